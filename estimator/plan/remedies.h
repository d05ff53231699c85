// What the messages about a plan offer. A rule knows which values would keep it; whether the plan
// keeps the other rules with them as well is found by trying.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Values of one key that keep a rule, the likeliest first.
struct Remedy {
  std::string text;  ///< "a tensor parallel size of {}"
  std::string path;  ///< "parallelism.tensor"
  std::vector<int64_t> values;
};

struct BrokenRule {
  Problem problem;  ///< `help` is the way out where none of the remedies is one
  std::vector<Remedy> remedies;
};

/// The problems, offering up to three values of each remedy with which the plan keeps all rules;
/// where there are none, those that break no rule but the others that are broken already.
/// `broken_by` tells what is wrong with a tree, and throws UserError for one that cannot be read.
std::vector<Problem> offer_remedies(
    const std::vector<BrokenRule>& broken,
    const Json& tree,
    const std::function<std::vector<BrokenRule>(const Json& tree)>& broken_by);

/// The divisors of `value`, those nearest to `wanted` first.
std::vector<int64_t> divisors_near(int64_t value, int64_t wanted);

}  // namespace estimator
