// Reads a configuration of DeepSpeed, which has all of a training but its model.
#pragma once

#include <string>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"

namespace sim {

bool is_deepspeed_config(const estimator::Json& tree);
ImportedPlan import_deepspeed_config(const estimator::Json& tree,
                                     const std::string& text,
                                     const std::string& origin);

}  // namespace sim
