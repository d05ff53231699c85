// Runs one rank of a plan on the device of this process: builds its shard, runs two iterations with
// stubbed communication, and returns what happened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "comm_stub/stub_backend.h"
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
  bool all_micro_batches = false;  ///< false: as many as the peak needs
  /// Record all iterations, not only the last one, so that module and operator are known when
  /// memory runs out. The counts in such a profile are of no use.
  bool record_throughout = false;
  bool attribute_memory = true;            ///< record what fills the peak
  bool take_stacks = false;                ///< record the C++ call stack of each allocation
  ForEachMemoryFile<bool> memory_files{};  ///< wanted files; they need attribute_memory
};

/// Hooks for code that runs a rank in order to compare it with another run.
struct RankRunHooks {
  /// Makes the rank's groups of `kinds`; their calls must go to the sink. If it is empty, the
  /// groups are stubs with the members of the layout.
  std::function<comm_stub::StubGroups(const estimator::ParallelLayout& layout,
                                      const std::vector<estimator::GroupKind>& kinds,
                                      const estimator::GroupCallSink& sink)>
      make_groups = {};
  /// Called for every collective of every phase, in order.
  std::function<void(const estimator::PhaseCall&)> on_call = {};
  /// Called before the optimizer's step; some frameworks free the gradients in the step.
  std::function<void(int64_t iteration, const models::Trainer&)> before_step = {};
  /// Called after the last step, when all its updated parameters are gathered, as before a
  /// checkpoint.
  std::function<void(const models::Trainer&)> at_end = {};
  std::optional<models::OptimizerSettings> optimizer = {};
};

struct FinishedRank {
  estimator::RankProfile profile;
  ForEachMemoryFile<std::string> memory_files;  ///< contents of the wanted files
};

/// The finished rank, or the place where the device's memory ran out. The device must have been
/// started.
using RankRunResult = std::variant<FinishedRank, estimator::OutOfMemoryRecord>;

RankRunResult run_rank(const estimator::Plan& plan,
                       int64_t rank,
                       const RankRunOptions& options,
                       const RankRunHooks& hooks = {});

}  // namespace sim
