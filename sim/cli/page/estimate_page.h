// The pages of commands that estimate a cluster or a program.
#pragma once

#include <optional>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/roofline.h"
#include "estimator/step/step_timeline.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/page/page.h"
#include "sim/cli/page/rank_detail.h"

namespace sim {

/// What a page shows of an estimate besides its own numbers.
struct EstimateParts {
  std::optional<RankDetail> worst_rank;  ///< empty if no rank was run
  const estimator::RankProfile* worst_profile = nullptr;
  estimator::StepTimeline timeline;
  estimator::Roofline roofline;
};

/// Verdict, advice, memory of each class, the worst rank in detail, the step, what bounds it, the
/// training, and where the numbers come from.
Page estimate_page(const PlanInput& input,
                   const estimator::ClusterEstimate& estimate,
                   const EstimateParts& parts);

}  // namespace sim
