// Ranks whose memory and time are formulas of their plan.
#pragma once

#include <functional>

#include "estimator/plan/plan.h"
#include "estimator/what_if/fit_probe.h"

namespace estimator {

/// Answers with `peak_bytes(plan, stage)` and counts what was run.
class FakeRanks {
 public:
  using Peak = std::function<int64_t(const Plan&, int64_t stage)>;
  /// Seconds that kernels of a micro-batch take forward; none where it is empty.
  using Seconds = std::function<double(const Plan&)>;
  explicit FakeRanks(Peak peak, Seconds seconds = nullptr)
      : peak_(std::move(peak)), seconds_(std::move(seconds)) {}

  PlanRunner runner();
  int ranks_run() const { return ranks_run_; }

  /// Of all classes of a plan.
  ClusterEstimate estimate(const Plan& plan);

 private:
  RankProfile profile(const Plan& plan, int64_t rank);

  Peak peak_;
  Seconds seconds_;
  int ranks_run_ = 0;
};

}  // namespace estimator
