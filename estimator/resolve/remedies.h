// The remedies that messages about a plan offer. A rule knows which values would satisfy it;
// whether the plan then satisfies the other rules too is found by trying.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Values of one key that satisfy a rule, the likeliest first.
struct Remedy {
  std::string text;  ///< "a tensor parallel size of {}"
  std::string path;  ///< "parallelism.tensor"
  std::vector<int64_t> values;
};

struct BrokenRule {
  Problem problem;  ///< `help` is used when no remedy works
  std::vector<Remedy> remedies;
};

/// The problems, each of which offers up to three values of each remedy that make the plan satisfy
/// all rules. If no value does, it offers values that break no rule except those that are broken
/// already. `broken_by` returns the rules that a tree breaks, and throws UserError for a tree that
/// cannot be read.
std::vector<Problem> offer_remedies(
    const std::vector<BrokenRule>& broken,
    const Json& tree,
    const std::function<std::vector<BrokenRule>(const Json& tree)>& broken_by);

/// The divisors of `value`, the nearest to `wanted` first.
std::vector<int64_t> divisors_near(int64_t value, int64_t wanted);

}  // namespace estimator
