// Defaults and rules of a plan. Used by resolve_plan() alone.
#pragma once

#include <vector>

#include "estimator/base/errors.h"
#include "estimator/plan/plan.h"
#include "estimator/plan/remedies.h"

namespace estimator {

/// Ranks of one replica of the model. Up to 10^18: each degree is at most a million.
int64_t model_ranks(const ParallelConfig& parallelism);

/// All ranks that the degrees ask for, or the largest int64_t when that is more.
int64_t ranks_needed(const ParallelConfig& parallelism);

/// Numbers that no plan can hold: checked first, since defaults and rules multiply and divide by
/// them.
std::vector<BrokenRule> numbers_out_of_range(const Plan& plan, const PlanContext& context);

/// Replaces "auto": nodes, GPUs of a node, data parallel size, batch, sequence, bucket, vocabulary
/// padding. Leaves what cannot be told from the plan for broken_rules() to name.
void fill_in_defaults(Plan& plan, const PlanContext& context);

inline constexpr int64_t kUsualGpusPerNode = 8;

/// The links and NICs that are usual with the cluster's GPU, where the plan says nothing of them.
void fill_in_hardware(ClusterConfig& cluster);

/// The rules of hardware and network that a cluster breaks by itself.
std::vector<BrokenRule> broken_cluster_rules(const ClusterConfig& cluster);

/// Every rule that the plan breaks, in the order a reader would meet them. Empty: the plan is good.
/// Needs numbers in range and defaults filled in.
std::vector<BrokenRule> broken_rules(const Plan& plan, const PlanContext& context);

}  // namespace estimator
