#include "estimator/what_if/largest_that_fits.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/errors.h"
#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

std::optional<Plan> plan_if_allowed(const PlanSpec& spec, const PlanEdits& edits) {
  try {
    return resolve_plan(spec.with(edits));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

LargestSize largest_that_fits(const std::vector<int64_t>& sizes,
                              const PlanOfSize& plan_of,
                              const PlanRunner& runner) {
  LargestSize largest;
  const auto fits = [&](int64_t size) {
    const std::optional<Plan> plan = plan_of(size);
    if (!plan) return false;
    FitAnswer answer;
    complete_fit(*plan, runner, answer);
    largest.trials.push_back({size, answer.fit, answer.peak_bytes});
    return answer.fits();
  };
  std::size_t fit = 0, too_many = 1;  // counts of the first sizes
  while (too_many <= sizes.size() && fits(sizes[too_many - 1])) {
    fit = too_many;
    too_many *= 2;
  }
  too_many = std::min(too_many, sizes.size() + 1);
  while (too_many - fit > 1) {
    const std::size_t middle = (fit + too_many) / 2;
    (fits(sizes[middle - 1]) ? fit : too_many) = middle;
  }
  if (fit > 0) largest.size = sizes[fit - 1];
  return largest;
}

std::string trials_text(std::vector<SizeTrial> trials, int64_t capacity_bytes) {
  std::sort(
      trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  std::string text;
  for (const SizeTrial& trial : trials) {
    text += fmt::format("  {:>5}  {:>11} of {}  {}\n",
                        trial.size,
                        format_gib(trial.peak_bytes),
                        format_gib(capacity_bytes),
                        fit_words(trial.outcome));
  }
  return text;
}

}  // namespace estimator
