// The value of a plan's key from the text that somebody wrote behind a flag.
#pragma once

#include <string>

#include "estimator/base/json.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {

/// What the flag writes for `typed`. A switch writes its constant for "true", and what denies it
/// for "false". Throws UserError that names the flag if it takes no such value.
estimator::Json flag_value(const PlanFlag& flag, const std::string& typed);

/// The value of a key of this type, or "auto". Throws UserError that names `source`.
estimator::Json option_value(estimator::OptionType type,
                             const std::string& text,
                             const std::string& source);

/// The word that stands for `word` in "yarn=rope,adam=adamw", or `word`.
std::string translated(const std::string& word, const std::string& synonyms);

}  // namespace sim
