#include "estimator/what_if/max_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "estimator/base/errors.h"
#include "estimator/base/units.h"
#include "estimator/communication/fabric.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/typed_flags.h"

namespace estimator {
namespace {

constexpr int64_t kLongestTried = 1 << 24, kUsualStep = 1024;

PlanEdits edits_of_sequence(int64_t length) { return {{"training.sequence_length", length}}; }

/// Why the plan of this length cannot be; empty if it can.
std::optional<std::string> refusal_of(const PlanSpec& spec, int64_t length) {
  try {
    resolve_plan(spec.with(edits_of_sequence(length)));
    return std::nullopt;
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    return fmt::format("{} ({})", problem.what, problem.where.substr(0, problem.where.find('\n')));
  }
}

/// Lengths that may be, ascending, and why longer ones may not.
struct AllowedLengths {
  std::vector<int64_t> lengths;
  std::optional<std::string> refusal;
};

/// The multiples of `step` up to the first that a rule refuses, by bisection, and `own` where it
/// lies between that and the one before.
AllowedLengths allowed_lengths(const PlanSpec& spec, int64_t step, int64_t own) {
  AllowedLengths allowed;
  for (int64_t length = step; length <= kLongestTried; length += step) {
    allowed.lengths.push_back(length);
  }
  const auto end = std::partition_point(allowed.lengths.begin(),
                                        allowed.lengths.end(),
                                        [&](int64_t length) { return !refusal_of(spec, length); });
  if (end == allowed.lengths.end()) return allowed;
  allowed.refusal = refusal_of(spec, *end);
  const bool has_own = own > *end - step && own < *end && !refusal_of(spec, own);
  allowed.lengths.erase(end, allowed.lengths.end());
  if (has_own) allowed.lengths.push_back(own);
  return allowed;
}

/// The longest that may be, if it fits: a rule ends the lengths, not memory.
bool is_ended_by_a_rule(const MaxSequence& answer, const std::vector<int64_t>& lengths) {
  return lengths.empty() || answer.sequence_length == lengths.back();
}

}  // namespace

MaxSequence find_max_sequence(const PlanSpec& spec, const PlanRunner& runner) {
  const Plan plan = resolve_plan(spec);
  const ParallelConfig& p = plan.parallelism;
  MaxSequence answer{.step = std::lcm(kUsualStep, 2 * p.context * p.tensor),
                     .capacity_bytes = gpu_of(plan.cluster).memory_bytes};
  const AllowedLengths allowed =
      allowed_lengths(spec, answer.step, plan.model.max_position_embeddings);
  LargestSize largest = largest_that_fits(
      allowed.lengths,
      [&](int64_t length) { return plan_if_allowed(spec, edits_of_sequence(length)); },
      runner);
  answer.sequence_length = largest.size;
  answer.trials = std::move(largest.trials);
  if (is_ended_by_a_rule(answer, allowed.lengths)) answer.not_allowed = allowed.refusal;
  return answer;
}

namespace {

int64_t shortest_of(const MaxSequence& answer) {
  int64_t shortest = answer.trials.front().size;
  for (const SizeTrial& trial : answer.trials) shortest = std::min(shortest, trial.size);
  return shortest;
}

}  // namespace

std::string max_sequence_text(const MaxSequence& answer) {
  std::string text = answer.trials.empty() ? "no sequence that was to be tried is allowed\n"
                                           : fmt::format("not even a sequence of {} fits\n",
                                                         with_commas(shortest_of(answer)));
  if (answer.sequence_length) {
    const bool is_own = *answer.sequence_length % answer.step != 0;
    text = fmt::format("longest sequence that fits: {} ({})\n  of the multiples of {}{}\n",
                       with_commas(*answer.sequence_length),
                       flags_to_type(edits_of_sequence(*answer.sequence_length)),
                       with_commas(answer.step),
                       is_own ? ", and the model's longest" : "");
  }
  if (answer.not_allowed) {
    text += fmt::format("  longer ones are not allowed: {}\n", *answer.not_allowed);
  }
  return text + trials_text(answer.trials, answer.capacity_bytes);
}

}  // namespace estimator
