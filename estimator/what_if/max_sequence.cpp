#include "estimator/what_if/max_sequence.h"

#include <fmt/format.h>

#include <numeric>

#include "estimator/base/units.h"
#include "estimator/communication/fabric.h"
#include "estimator/what_if/typed_flags.h"

namespace estimator {
namespace {

constexpr int64_t kLongestTried = 1 << 24, kUsualStep = 1024;

PlanEdits edits_of_sequence(int64_t length) { return {{"training.sequence_length", length}}; }

/// Empty if a rule refuses it.
std::optional<Plan> plan_with_sequence(const PlanSpec& spec, int64_t length) {
  try {
    return resolve_plan(spec.with(edits_of_sequence(length)));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

MaxSequence find_max_sequence(const PlanSpec& spec, const PlanRunner& runner) {
  const Plan plan = resolve_plan(spec);
  const ParallelConfig& p = plan.parallelism;
  MaxSequence answer{.step = std::lcm(kUsualStep, 2 * p.context * p.tensor),
                     .capacity_bytes = gpu_of(plan.cluster).memory_bytes};
  std::vector<int64_t> lengths;
  for (int64_t length = answer.step; length <= kLongestTried; length += answer.step) {
    lengths.push_back(length);
  }
  int64_t likely_stage = 0;
  const std::size_t count = count_that_fit(lengths, [&](int64_t length) {
    const std::optional<Plan> tried = plan_with_sequence(spec, length);
    if (!tried) return false;
    const FitAnswer probed = probe_fit(*tried, likely_stage, runner);
    if (probed.estimate) likely_stage = worst_stage(*probed.estimate);
    answer.trials.push_back({length, probed.fit, probed.peak_bytes});
    return probed.fits();
  });
  if (count > 0) answer.sequence_length = lengths[count - 1];
  return answer;
}

std::string max_sequence_text(const MaxSequence& answer) {
  std::string text = fmt::format("not even a sequence of {} fits\n", with_commas(answer.step));
  if (answer.sequence_length) {
    text = fmt::format("longest sequence that fits: {} ({})\n  of the multiples of {}\n",
                       with_commas(*answer.sequence_length),
                       flags_to_type(edits_of_sequence(*answer.sequence_length)),
                       with_commas(answer.step));
  }
  return text + trials_text(answer.trials, answer.capacity_bytes);
}

}  // namespace estimator
