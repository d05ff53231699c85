#include "sim/cli/values/token_words.h"

#include <fmt/format.h>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"

namespace sim {

using estimator::Json;

namespace {

constexpr const char* kTokensPath = "training.tokens";
constexpr std::string_view kChinchilla = "chinchilla";

/// Parameters of the model alone, whatever else the tree says.
int64_t parameters_of(const Json& tree, const std::string& origin) {
  const Json alone = {{"model", tree.value("model", Json())},
                      {"cluster", {{"gpu", "h100"}, {"nodes", 1}}}};
  const estimator::Plan plan = estimator::resolve_plan(alone, {.origin = origin});
  return estimator::parameter_count(plan.model, plan.model.vocab_size);
}

}  // namespace

bool is_token_rule(std::string_view path, std::string_view text) {
  return path == kTokensPath && text == kChinchilla;
}

std::string read_token_rule(Json& tree, const std::string& origin) {
  constexpr int64_t kTokensOfParameter = 20;
  const Json said = estimator::find_in_tree(tree, kTokensPath);
  if (!said.is_string() || !is_token_rule(kTokensPath, said.get<std::string>())) return "";
  const int64_t parameters = parameters_of(tree, origin);
  const int64_t tokens = kTokensOfParameter * parameters;
  estimator::set_in_tree(tree, kTokensPath, tokens, origin);
  return fmt::format(
      "training of {} tokens, {} for each of {} parameters (published: Hoffmann et al. 2022)\n",
      estimator::with_commas(tokens),
      kTokensOfParameter,
      estimator::with_commas(parameters));
}

}  // namespace sim
