// The plan of an estimate as a file that gives the same estimate again.
#pragma once

#include <string>

#include "estimator/base/json.h"
#include "estimator/resolve/plan_spec.h"

namespace sim {

/// What was said, and what followed from the number of GPUs, which a file cannot leave to a flag or
/// to WORLD_SIZE: the machines, the GPUs of each, and the global batch. `calibration_file` is the
/// path of --calibration, or "". Throws UserError as resolve_plan() does.
estimator::Json written_plan(const estimator::PlanSpec& spec, const std::string& calibration_file);

}  // namespace sim
