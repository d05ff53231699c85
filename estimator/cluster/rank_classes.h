// Ranks that are alike: the same shard, the same groups, the same schedule. One rank of each class
// is run, and stands for all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

/// Tensor, context and data ranks of one stage are alike: their shards have equal shapes (the
/// distributed optimizer pads its shards to equal length, and data rank 0 holds none of the
/// padding). So a class is a set of pipeline stages. But the further back a context rank is in a
/// ring (context_comm p2p), the more outputs of steps in attention it holds for a moment: all
/// compute the same, and the last one stands for the others. Where each data rank owns whole
/// parameters (FrameworkTraits::whole_parameters) the first one, which owns the largest, stands for
/// the others, though they own less or nothing.
struct RankClass {
  int64_t representative_rank = 0;  ///< the lowest of those that hold most
  int64_t count = 0;                ///< ranks of the cluster in it
  std::vector<int64_t> stages;      ///< ascending
};

/// The classes of a resolved plan, by representative rank. Every stage is in exactly one.
std::vector<RankClass> rank_classes(const Plan& plan);

/// Stages as people write them: "0", "1-14", "1-3, 5".
std::string stages_to_text(const std::vector<int64_t>& stages);

}  // namespace estimator
