// The JSON tree that a plan is resolved from, put together from a file, flags and variables.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/fields.h"

namespace sim {

/// Sets the value at a path such as "parallelism.tensor", and makes the objects on the way.
/// A model that is given by its name becomes {"preset": name} first, so that fields can be added.
/// Throws UserError, naming `source`, where something other than an object is in the way.
void set_in_tree(estimator::Json& tree,
                 std::string_view path,
                 estimator::Json value,
                 const std::string& source);

/// The value at a path, or null when there is none.
estimator::Json find_in_tree(const estimator::Json& tree, std::string_view path);

}  // namespace sim
