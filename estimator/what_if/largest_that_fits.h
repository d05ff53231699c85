// The largest of several sizes that fits, by doubling and bisection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"

namespace estimator {

/// How many of the first sizes fit: 1, 2, 4, ... of them are tried, then it is bisected. `fits`
/// takes a size; memory must grow with it.
template <class Fits>
std::size_t count_that_fit(const std::vector<int64_t>& sizes, const Fits& fits) {
  std::size_t fit = 0, too_many = 1;
  while (too_many <= sizes.size() && fits(sizes[too_many - 1])) {
    fit = too_many;
    too_many *= 2;
  }
  too_many = std::min(too_many, sizes.size() + 1);
  while (too_many - fit > 1) {
    const std::size_t middle = (fit + too_many) / 2;
    (fits(sizes[middle - 1]) ? fit : too_many) = middle;
  }
  return fit;
}

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
  visit("peak_bytes", trial.peak_bytes, "of the worst rank that was run");
}

/// A line for each, the smallest first: "      4    49.08 GiB of 79.19 GiB  fits".
std::string trials_text(std::vector<SizeTrial> trials, int64_t capacity_bytes);

}  // namespace estimator
