// The tensors of real ranks beside the whole model's, which rank 0 has and broadcasts.
#pragma once

#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "sim/verify/tolerance.h"
#include "sim/verify/verification.h"
#include "sim/world/snapshot.h"
#include "sim/world/world.h"

namespace c10d {
class Backend;
}

namespace sim {

/// What the whole model's run left; on rank 0.
using WholeModel = std::vector<Snapshot>;

/// The real rank whose tensors are compared.
struct ComparedRank {
  int64_t rank = 0;
  Tolerance tolerance;
};

/// Compares each gradient and parameter of each iteration. Every rank of the world must call it;
/// `whole` is read on rank 0 alone. Fills in tensors, largest_error and differences.
void compare_tensors(World& world,
                     c10d::Backend& world_group,
                     const WholeModel& whole,
                     std::vector<Snapshot> real,
                     const ComparedRank& rank,
                     RankVerification& verification);

}  // namespace sim
