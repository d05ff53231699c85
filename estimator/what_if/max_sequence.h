// Finds the longest sequence that surely fits, by running the plan with several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/what_if/fit_probe.h"
#include "estimator/what_if/largest_that_fits.h"

namespace estimator {

struct MaxSequence {
  DocumentHead head{1, "max_sequence"};
  std::optional<int64_t> sequence_length;  ///< empty: not even one step fits
  int64_t step = 0;
  std::optional<std::string> not_allowed;  ///< why no longer ones were tried
  int64_t capacity_bytes = 0;
  std::vector<SizeTrial> trials;  ///< in the order in which they were run
};
template <class Visitor>
void visit_fields(Visitor& visit, MaxSequence& answer) {
  visit_head(visit, answer.head);
  visit("sequence_length", answer.sequence_length, "the longest that fits; null: none of them");
  visit("step", answer.step, "of which multiples were tried, and the model's own longest");
  visit("not_allowed", answer.not_allowed, "the rule that refuses longer ones, if one does");
  visit("capacity_bytes", answer.capacity_bytes, "what the GPU has");
  visit("trials", answer.trials, "every length that was run");
}

/// Tries multiples of 1,024 tokens, or of the least that tensor and context ranks can divide, up to
/// 16,777,216, and no longer ones than a rule allows (learned positions end; these are tried
/// whole); the samples of a step stay the same. The length is doubled until it does not surely fit,
/// and then bisected.
MaxSequence find_max_sequence(const PlanSpec& spec, const PlanRunner& runner);

std::string max_sequence_text(const MaxSequence& answer);

}  // namespace estimator
