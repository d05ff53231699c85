// The largest of several sizes that fits, by doubling and bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/resolve/plan_spec.h"
#include "estimator/what_if/fit_probe.h"

namespace estimator {

/// A size that was run.
struct SizeTrial {
  int64_t size = 0;
  Fit outcome = Fit::kDoesNotFit;
  int64_t peak_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, SizeTrial& trial) {
  visit("size", trial.size, "that was tried");
  visit("outcome", trial.outcome, "the verdict");
  visit("peak_bytes", trial.peak_bytes, "of the worst rank");
}

struct LargestSize {
  std::optional<int64_t> size;    ///< empty: not even the first fits
  std::vector<SizeTrial> trials;  ///< in the order in which they were run
};

/// The plan with so many of something; empty if a rule refuses it, which counts as too many.
using PlanOfSize = std::function<std::optional<Plan>(int64_t size)>;

/// The plan with these edits; empty if a rule refuses it.
std::optional<Plan> plan_if_allowed(const PlanSpec& spec, const PlanEdits& edits);

/// The largest of `sizes`, which ascend, with which the plan surely fits. The first, the second,
/// the fourth and so on are tried until one does not fit; then it is bisected. Memory must grow
/// with the size.
LargestSize largest_that_fits(const std::vector<int64_t>& sizes,
                              const PlanOfSize& plan_of,
                              const PlanRunner& runner);

/// A line for each, the smallest first: "      4    49.08 GiB of 79.19 GiB  fits".
std::string trials_text(std::vector<SizeTrial> trials, int64_t capacity_bytes);

}  // namespace estimator
