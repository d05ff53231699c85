// Runs one rank of a plan on the device of this process: builds its shard, runs two iterations with
// stubbed communication, and tells what happened.
#pragma once

#include <cstdint>
#include <variant>

#include "estimator/plan.h"
#include "estimator/rank_profile.h"

namespace sim {

struct RankRunOptions {
  estimator::DeviceKind device = estimator::DeviceKind::kVirtual;
  bool all_micro_batches = false;  ///< else as many as the peak needs
};

/// The profile, or where the device's memory ran out. The device must have been started.
using RankRunResult = std::variant<estimator::RankProfile, estimator::OutOfMemoryRecord>;

RankRunResult run_rank(const estimator::Plan& plan, int64_t rank, const RankRunOptions& options);

}  // namespace sim
