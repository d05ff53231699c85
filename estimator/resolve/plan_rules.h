// Defaults and rules of a plan. Only resolve_plan() and resolve_cluster() use them.
#pragma once

#include <vector>

#include "estimator/base/errors.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/remedies.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

/// The most ranks of a cluster that Onerank handles.
inline constexpr int64_t kLargestWorld = 1'000'000;

/// Number of ranks of one replica of the model. It is at most 10^18, since each degree is at most a
/// million.
int64_t model_ranks(const ParallelConfig& parallelism);

/// Number of ranks that the parallel degrees need, or the largest int64_t if it is more than that.
int64_t ranks_needed(const ParallelConfig& parallelism);

/// Numbers that are out of range for any plan. They are checked first, because defaults and rules
/// multiply and divide by them.
std::vector<BrokenRule> numbers_out_of_range(const Plan& plan, const PlanContext& context);

/// Replaces "auto" in nodes, GPUs of a node, data parallel size, batch, sequence, bucket and
/// vocabulary padding. Values that do not follow from the plan are left empty, and broken_rules()
/// reports them.
void fill_in_defaults(Plan& plan, const PlanContext& context);

/// GPUs of the usual machine with the cluster's GPU; 8 for an unknown GPU.
int64_t usual_gpus_per_node(const ClusterConfig& cluster);

/// The links and NICs that are usual with the cluster's GPU, where the plan says nothing of them.
void fill_in_hardware(ClusterConfig& cluster);

/// The rules of hardware and network that a cluster breaks by itself.
std::vector<BrokenRule> broken_cluster_rules(const ClusterConfig& cluster);

/// Every rule that the plan breaks, in the order in which a reader meets them; empty if it breaks
/// none. Needs numbers in range and defaults filled in.
std::vector<BrokenRule> broken_rules(const Plan& plan, const PlanContext& context);

}  // namespace estimator
