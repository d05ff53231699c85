// Finds the largest micro-batch that surely fits, by running the plan with several sizes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/what_if/fit_probe.h"

namespace estimator {

struct MicroBatchTrial {
  int64_t micro_batch_size = 0;
  Fit outcome = Fit::kDoesNotFit;
  int64_t peak_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MicroBatchTrial& trial) {
  visit("micro_batch_size", trial.micro_batch_size, "samples");
  bool fits = trial.outcome == Fit::kFits;
  visit("fits", fits, "every rank fits, also with the upper end of what it may need");
  visit("outcome", trial.outcome, "the verdict");
  visit("peak_bytes", trial.peak_bytes, "of the worst rank");
}

/// What stays the same while the micro-batch size changes.
enum class HeldFixed { kGlobalBatch, kMicroBatches };
constexpr std::array<EnumName<HeldFixed>, 2> enum_names(HeldFixed) {
  return {{{HeldFixed::kGlobalBatch, "global_batch_size"},
           {HeldFixed::kMicroBatches, "micro_batches"}}};
}

struct MaxMicroBatch {
  DocumentHead head{1, "max_micro_batch"};
  std::optional<int64_t> micro_batch_size;  ///< empty: not even 1 fits
  HeldFixed held_fixed = HeldFixed::kGlobalBatch;
  int64_t micro_batches = 0;      ///< with the found size; if none was found, as in the plan
  int64_t global_batch_size = 0;  ///< the same for samples of one step
  int64_t capacity_bytes = 0;
  std::vector<MicroBatchTrial> trials;  ///< in the order in which they were run
};
template <class Visitor>
void visit_fields(Visitor& visit, MaxMicroBatch& answer) {
  visit_head(visit, answer.head);
  visit("micro_batch_size", answer.micro_batch_size, "the largest that fits; null: not even 1");
  visit("held_fixed",
        answer.held_fixed,
        "global_batch_size where the plan gives one: sizes divide it; else micro_batches");
  visit("micro_batches", answer.micro_batches, "of one step on one data rank, with that size");
  visit("global_batch_size", answer.global_batch_size, "samples of one step, with that size");
  visit("capacity_bytes", answer.capacity_bytes, "what the GPU has");
  visit("trials", answer.trials, "every size that was run");
}

/// Only sizes that the plan of `spec` allows are tried: if the plan gives a global batch, the size
/// must divide it and satisfy the rules; else the global batch grows with the size. The size is
/// doubled until it does not surely fit, and then bisected. This assumes that memory grows with the
/// micro-batch.
MaxMicroBatch find_max_micro_batch(const PlanSpec& spec, const PlanRunner& runner);

std::string max_micro_batch_text(const MaxMicroBatch& answer);

}  // namespace estimator
