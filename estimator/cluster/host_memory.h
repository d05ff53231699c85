// What an offloaded optimizer needs of the machines' own memory.
#pragma once

#include <optional>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/plan/parallel_layout.h"

namespace estimator {

/// Of the profiles of `classes`; empty where none keeps anything on the host.
std::optional<HostMemoryEstimate> host_memory(const Plan& plan,
                                              const ParallelLayout& layout,
                                              const std::vector<RankClass>& classes,
                                              const std::vector<const RankProfile*>& profiles);

}  // namespace estimator
