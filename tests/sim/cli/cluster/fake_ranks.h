// Ranks whose memory and time are formulas of their plan.
#pragma once

#include <functional>

#include "estimator/plan/plan.h"
#include "sim/cli/cluster/fit_probe.h"

namespace sim {

/// Answers with `peak_bytes(plan, stage)` and counts what was run.
class FakeRanks {
 public:
  using Peak = std::function<int64_t(const estimator::Plan&, int64_t stage)>;
  /// Seconds that kernels of a micro-batch take forward; none where it is empty.
  using Seconds = std::function<double(const estimator::Plan&)>;
  explicit FakeRanks(Peak peak, Seconds seconds = nullptr)
      : peak_(std::move(peak)), seconds_(std::move(seconds)) {}

  PlanRunner runner();
  int ranks_run() const { return ranks_run_; }

  /// Of all classes of a plan.
  estimator::ClusterEstimate estimate(const estimator::Plan& plan);

 private:
  estimator::RankProfile profile(const estimator::Plan& plan, int64_t rank);

  Peak peak_;
  Seconds seconds_;
  int ranks_run_ = 0;
};

}  // namespace sim
