// The largest micro-batch that surely fits: bisection over runs, each executed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document.h"
#include "estimator/plan/plan.h"
#include "sim/cli/cluster/fit_probe.h"

namespace sim {

struct MicroBatchTrial {
  int64_t micro_batch_size = 0;
  estimator::Fit outcome = estimator::Fit::kDoesNotFit;
  int64_t peak_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MicroBatchTrial& trial) {
  visit("micro_batch_size", trial.micro_batch_size, "samples");
  bool fits = trial.outcome == estimator::Fit::kFits;
  visit("fits", fits, "every rank fits, also with the upper end of what it may need");
  visit("outcome", trial.outcome, "the verdict");
  visit("peak_bytes", trial.peak_bytes, "of the worst rank that was run");
}

struct MaxMicroBatch {
  estimator::DocumentHead head{1, "max_micro_batch"};
  std::optional<int64_t> micro_batch_size;  ///< empty: not even 1 fits
  int64_t micro_batches = 0;
  int64_t capacity_bytes = 0;
  std::vector<MicroBatchTrial> trials;  ///< in the order in which they were run
};
template <class Visitor>
void visit_fields(Visitor& visit, MaxMicroBatch& answer) {
  visit_head(visit, answer.head);
  visit("micro_batch_size", answer.micro_batch_size, "the largest that fits; null: not even 1");
  visit("micro_batches", answer.micro_batches, "of one step on one data rank, as in the plan");
  visit("capacity_bytes", answer.capacity_bytes, "what the GPU has");
  visit("trials", answer.trials, "every size that was run");
}

/// Doubles the micro-batch from 1 until it does not surely fit, then bisects. The number of
/// micro-batches stays, so the global batch grows with their size. Memory must grow with the
/// micro-batch.
MaxMicroBatch find_max_micro_batch(const estimator::Plan& plan, const PlanRunner& runner);

std::string max_micro_batch_text(const MaxMicroBatch& answer);

}  // namespace sim
