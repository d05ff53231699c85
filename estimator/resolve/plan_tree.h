// The JSON tree that a plan is resolved from, put together from a file, flags and variables.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/json.h"

namespace estimator {

/// The most nested levels of objects and lists in a plan. The limit keeps the stack of readers
/// small.
inline constexpr int kDeepestPlan = 64;

/// Sets the value at a path such as "parallelism.tensor", and makes the objects on the way.
/// A model that is given by its name becomes {"preset": name} first, so that fields can be added.
/// Throws UserError that names `source` when something other than an object is in the way, and for
/// a path of more than kDeepestPlan keys.
void set_in_tree(Json& tree, std::string_view path, Json value, const std::string& source);

/// The value at a path, or null when there is none.
Json find_in_tree(const Json& tree, std::string_view path);

}  // namespace estimator
