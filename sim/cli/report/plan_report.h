// What a plan says, and where it comes from, in a few lines.
#pragma once

#include <string>

#include "sim/cli/input/plan_options.h"

namespace sim {

/// "simulated world 1024 (from WORLD_SIZE)"
std::string world_text(const PlanInput& input);

/// "allocator expandable_segments:True (from PYTORCH_CUDA_ALLOC_CONF)" as a line; "" without any.
std::string allocator_line(const PlanInput& input);

/// The plan in lines: name, world, layout, training, allocator.
std::string plan_text(const PlanInput& input);

}  // namespace sim
