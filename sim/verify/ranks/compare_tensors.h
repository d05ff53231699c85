// Compares the tensors of real ranks with those of the whole model, which rank 0 has and
// broadcasts.
#pragma once

#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "sim/verify/ranks/snapshot.h"
#include "sim/verify/ranks/whole_model.h"
#include "sim/verify/ranks/world.h"
#include "sim/verify/verification.h"

namespace c10d {
class Backend;
}

namespace sim {

/// Compares each gradient and parameter of each iteration. Every rank of the world must call it;
/// `whole` is read on rank 0 only. Fills in tensors, largest_error and differences of
/// `verification`, whose `rank` must be set.
void compare_tensors(World& world,
                     c10d::Backend& world_group,
                     const WholeModel& whole,
                     std::vector<Snapshot> real,
                     RankVerification& verification);

}  // namespace sim
