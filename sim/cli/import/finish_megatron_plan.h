// What follows from several of Megatron-LM's arguments together.
#pragma once

#include "sim/cli/import/imported_plan.h"

namespace sim {

/// Adds what follows from several arguments together (megatron/training/arguments.py). What the
/// plan does not say of its model is that of its preset.
void finish_megatron_plan(ImportedPlan& plan);

}  // namespace sim
