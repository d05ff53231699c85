// Runs one rank of a plan on the device of this process: builds its shard, runs two iterations with
// stubbed communication, and tells what happened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "comm_stub/stub_groups.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/profile/run_record.h"
#include "models/optimizer/optimizer.h"
#include "sim/tracking/memory_file_kinds.h"

namespace models {
class Trainer;
}

namespace sim {

struct RankRunOptions {
  estimator::DeviceKind device = estimator::DeviceKind::kVirtual;
  bool all_micro_batches = false;  ///< else as many as the peak needs
  /// Record every iteration, not the last alone: where memory runs out is then known in full. The
  /// counts of a profile made so are of no use.
  bool record_throughout = false;
  bool attribute_memory = true;            ///< say what fills the peak
  bool take_stacks = false;                ///< C++ functions of each allocation
  ForEachMemoryFile<bool> memory_files{};  ///< those that are wanted; they need attribution
};

/// For who runs a rank in order to compare it.
struct RankRunHooks {
  /// The rank's groups of `kinds`, whose calls go to the sink. Without it: stubs, whose members are
  /// the layout's.
  std::function<comm_stub::StubGroups(const estimator::ParallelLayout& layout,
                                      const std::vector<estimator::GroupKind>& kinds,
                                      const estimator::GroupCallSink& sink)>
      make_groups = {};
  /// Every collective of every phase, in order.
  std::function<void(const estimator::PhaseCall&)> on_call = {};
  /// Before the optimizer's step, which some frameworks free the gradients for.
  std::function<void(int64_t iteration, const models::Trainer&)> before_step = {};
  /// After the optimizer's step: parameters are those of the iteration.
  std::function<void(int64_t iteration, const models::Trainer&)> after_iteration = {};
  std::optional<models::OptimizerSettings> optimizer = {};
};

struct FinishedRank {
  estimator::RankProfile profile;
  ForEachMemoryFile<std::string> memory_files;  ///< the contents of those that were wanted
};

/// What the rank did, or where the device's memory ran out. The device must have been started.
using RankRunResult = std::variant<FinishedRank, estimator::OutOfMemoryRecord>;

RankRunResult run_rank(const estimator::Plan& plan,
                       int64_t rank,
                       const RankRunOptions& options,
                       const RankRunHooks& hooks = {});

}  // namespace sim
