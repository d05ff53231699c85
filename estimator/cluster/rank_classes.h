// Classes of ranks that are alike: they have the same shard, the same groups and the same schedule.
// One rank of each class is run and stands for the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

/// Tensor, context and data ranks of one stage are alike, because their shards have equal shapes
/// (the distributed optimizer pads its shards to equal length, and data rank 0 holds none of the
/// padding). So a class is a set of pipeline stages. There are three exceptions. In a ring of
/// context ranks (context_comm p2p) later ranks hold more outputs of attention steps for a moment;
/// all of them compute the same, and the last one stands for the others. If each data rank owns
/// whole parameters (FrameworkTraits::whole_parameters), the first one, which owns the largest
/// parameter, stands for the others, although they own less or nothing. If Megatron-LM deals whole
/// parameters to the data ranks in turn (dealt_parameters.h), a rank whose own parameters need most
/// bytes stands for the others; of several such ranks that one which holds most in a ring of
/// context ranks.
struct RankClass {
  int64_t representative_rank = 0;  ///< the lowest of the ranks that hold most
  int64_t count = 0;                ///< ranks of the cluster in it
  std::vector<int64_t> stages;      ///< ascending
};

/// The classes of a resolved plan, sorted by their first stage. Every stage is in exactly one
/// class.
std::vector<RankClass> rank_classes(const Plan& plan);

/// Stages as people write them: "0", "1-14", "1-3, 5".
std::string stages_to_text(const std::vector<int64_t>& stages);

}  // namespace estimator
