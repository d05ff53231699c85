// The length of a training by a rule, where no number is known: --train-tokens chinchilla.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/json.h"

namespace sim {

/// Whether `text` at this key of a plan is the word of a rule.
bool is_token_rule(std::string_view path, std::string_view text);

/// Replaces "chinchilla" at training.tokens by 20 tokens for each parameter of the model that the
/// tree names (Hoffmann et al. 2022, table 3, for dense models), and returns a line that says so;
/// "" where the tree has a number. Throws UserError if there is no such model.
std::string read_token_rule(estimator::Json& tree, const std::string& origin);

}  // namespace sim
