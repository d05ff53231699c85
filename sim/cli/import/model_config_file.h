// Reads the model of a config.json of Hugging Face's transformers.
#pragma once

#include <string>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"

namespace sim {

bool is_hf_config(const estimator::Json& tree);
ImportedPlan import_hf_config(const estimator::Json& tree,
                              const std::string& text,
                              const std::string& origin);

}  // namespace sim
