// The host memory that an offloaded optimizer needs.
#pragma once

#include <optional>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/plan/parallel_layout.h"

namespace estimator {

/// The host memory by the profiles of `classes`; empty if none of them keeps anything on the host.
std::optional<HostMemoryEstimate> host_memory(const Plan& plan,
                                              const ParallelLayout& layout,
                                              const std::vector<RankClass>& classes,
                                              const std::vector<const RankProfile*>& profiles);

}  // namespace estimator
