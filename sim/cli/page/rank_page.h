// The pages of one rank: of `run`, and of `memory`, which reads what a rank left at its peak.
#pragma once

#include <cstdint>

#include "estimator/profile/rank_profile.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/page/page.h"
#include "sim/cli/page/rank_detail.h"

namespace sim {

/// Phases, memory over two iterations, the peak, and memory by module. `limit_bytes` is the GPU's
/// memory.
Page rank_page(const PlanInput& input,
               const estimator::RankProfile& profile,
               const RankDetail& detail,
               int64_t limit_bytes);

/// The peak and what fills it; `groups` are its allocations as the command groups them.
Page peak_page(const estimator::PeakSnapshot& snapshot,
               const std::string& place,
               TitledTable groups);

}  // namespace sim
