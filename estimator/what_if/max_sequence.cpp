#include "estimator/what_if/max_sequence.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "estimator/base/units.h"
#include "estimator/communication/fabric.h"
#include "estimator/what_if/typed_flags.h"

namespace estimator {
namespace {

constexpr int64_t kLongestTried = 1 << 24, kUsualStep = 1024;

PlanEdits edits_of_sequence(int64_t length) { return {{"training.sequence_length", length}}; }

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
  LargestSize largest = largest_that_fits(
      lengths,
      [&](int64_t length) { return plan_if_allowed(spec, edits_of_sequence(length)); },
      runner);
  answer.sequence_length = largest.size;
  answer.trials = std::move(largest.trials);
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
