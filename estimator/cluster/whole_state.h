// What the whole model keeps between steps, counted in the ranks that were run, and the fewest GPUs
// whose memory holds it.
#pragma once

#include <optional>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// One copy of everything: the sum over all ranks of the cluster, divided by how many ranks hold
/// the same part. Where ranks own whole parameters, or parameters have unequal states (Muon), the
/// optimizer's state is that of the ranks' parameters instead. `profiles` are those of `classes`.
/// Empty if the ranks have not counted their state.
std::optional<WholeState> whole_state(const Plan& plan,
                                      const Gpu& gpu,
                                      const std::vector<RankClass>& classes,
                                      const std::vector<const RankProfile*>& profiles);

}  // namespace estimator
