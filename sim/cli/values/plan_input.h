// A plan as the user gave it.
#pragma once

#include <string>

#include "estimator/resolve/plan_spec.h"

namespace sim {

/// What the user gave for a plan, the resolved plan, and where the parts that are not in the plan
/// came from.
struct PlanInput {
  estimator::PlanSpec spec;
  estimator::Plan plan;
  std::string world_size_origin;  ///< "WORLD_SIZE", "--world-size" or "the plan"
  std::string allocator_origin;   ///< a variable's name, "the plan", or "" if there are none
  std::string import_lines;  ///< what became of another program's file, in lines; "" for a plan
};

}  // namespace sim
