// A plan's flag has several names ("--tensor-model-parallel-size", "--tp"), and messages use the
// short one. What a user reads should be what the user typed.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/errors.h"

namespace sim {

/// The problems with each flag of a plan called by the name that stands in `arguments`.
std::vector<estimator::Problem> as_typed(std::vector<estimator::Problem> problems,
                                         const std::vector<std::string>& arguments);

/// Replaces `name` in `text` where neither a letter, a digit, nor one of "_.-" is beside it.
void replace_name(std::string& text, const std::string& name, const std::string& with);

}  // namespace sim
