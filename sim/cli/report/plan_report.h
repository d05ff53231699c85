// A plan in a few lines of text, with where its parts come from.
#pragma once

#include <string>

#include "sim/cli/values/plan_input.h"

namespace sim {

/// "simulated world 1024 (from WORLD_SIZE)"
std::string world_text(const PlanInput& input);

/// What became of another program's file, a line such as "allocator expandable_segments:True (from
/// PYTORCH_CUDA_ALLOC_CONF)", and the plan's notes (plan_notes.h); "" if there is nothing to say.
std::string input_lines(const PlanInput& input);

/// The plan in lines: name, world, layout, training, allocator.
std::string plan_text(const PlanInput& input);

}  // namespace sim
