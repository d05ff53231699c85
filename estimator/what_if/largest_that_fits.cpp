#include "estimator/what_if/largest_that_fits.h"

#include <fmt/format.h>

#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"

namespace estimator {

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
