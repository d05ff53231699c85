// The stages of a plan at the speed that the power of their boards allows.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/compute/board_power.h"
#include "estimator/step/stage_time.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// Stages that are alike, and the profile of one of their ranks.
struct StageGroup {
  const RankProfile* profile = nullptr;
  std::vector<int64_t> stages;
};

struct LimitedStages {
  std::vector<StageTime> stages;  ///< in the order of the pipeline
  StepTime step;
  std::vector<BoardUse> boards;  ///< of each group
};

/// Prices the stages and plays the step (step_time.h); where the board of a group would need more
/// than its limit, again with its products and attention slowed. `groups` have each stage of the
/// plan once.
LimitedStages limited_stages(const std::vector<StageGroup>& groups, const StageTarget& target);

}  // namespace estimator
