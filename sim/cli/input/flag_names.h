// A plan's flag has several names ("--tensor-model-parallel-size", "--tp"), and messages use the
// short one. These functions put the name that the user typed into messages.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/errors.h"

namespace sim {

/// Ranks of the world of a plan. Other names mean the same.
inline constexpr const char* kWorldSizeFlag = "--gpus";

/// The same problems, in which each flag of a plan has the name that stands in `arguments`.
std::vector<estimator::Problem> as_typed(std::vector<estimator::Problem> problems,
                                         const std::vector<std::string>& arguments);

/// Replaces `name` in `text` by `with`, except where a letter, a digit or one of "_.-" is beside
/// it.
void replace_name(std::string& text, const std::string& name, const std::string& with);

}  // namespace sim
