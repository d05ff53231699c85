#include "estimator/resolve/plan_tree.h"

#include <fmt/format.h>

#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/text.h"

namespace estimator {

void set_in_tree(Json& tree, std::string_view path, Json value, const std::string& source) {
  const std::vector<std::string> keys = split(path, '.');
  if (keys.size() > static_cast<std::size_t>(kDeepestPlan)) {
    throw UserError({.what = "a key of the plan is nested too deeply",
                     .where = fmt::format("{}: {} keys in each other", source, keys.size()),
                     .help = "write a key of a plan, such as parallelism.tensor"});
  }
  Json* node = &tree;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool names_the_model = i == 1 && keys[0] == "model" && node->is_string();
    if (names_the_model) *node = Json{{"preset", *node}};
    if (node->is_null()) *node = Json::object();
    if (!node->is_object()) {
      throw UserError(
          {.what = "a flag sets a key inside a value that is no object",
           .where = fmt::format("{} sets {}, above it stands {}", source, path, shown(*node)),
           .help = "write { \"key\": value, ... } there in the plan"});
    }
    node = &(*node)[keys[i]];
  }
  *node = std::move(value);
}

Json find_in_tree(const Json& tree, std::string_view path) {
  const Json* node = &tree;
  for (const std::string& key : split(path, '.')) {
    if (!node->is_object() || !node->contains(key)) return nullptr;
    node = &(*node)[key];
  }
  return *node;
}

}  // namespace estimator
