// What a model chunk does in a step: the order of a rank's profile, replayed.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/replay/work_price.h"
#include "estimator/step/axis_seconds.h"
#include "estimator/step/graph_launches.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// Seconds of a part of the step: kernels, and the communication for which kernels wait, by axis.
struct PartTime {
  double compute_seconds = 0;
  ExposedCommunication communication_seconds;

  double total_seconds() const;
};

/// Adds `times` x `part` to `sum`.
void add(PartTime& sum, const PartTime& part, double times = 1);

/// What one call of a record costs.
struct RecordPrice {
  WorkPrice price;
  double issue_seconds = 0;             ///< on the host, without what it dispatches before
  std::optional<GroupKind> group = {};  ///< of a collective
  GroupKind axis_group = {};            ///< for the axis of which a collective counts
  bool is_message = false;              ///< else all members of the group begin it together
  bool host_waits = false;              ///< the host waits until it is done
};

/// Of a profile: the prices of its records, in their order. What is not played is empty.
struct PricedRecords {
  std::vector<std::optional<RecordPrice>> operators;
  std::vector<std::optional<RecordPrice>> collectives;
  GraphLaunches graphs;

  const std::vector<std::optional<RecordPrice>>& of(OrderKind kind) const {
    return kind == OrderKind::kOperator ? operators : collectives;
  }
};

/// A work of the last micro-batch: seconds since its forward began, or its backward.
struct MicroBatchWork {
  std::size_t event = 0;  ///< place among the order's events
  double begin = 0, end = 0;
};

/// The gathers of updated parameters that the chunk's first forward waits for, when they begin with
/// it.
struct GatherTime {
  double seconds = 0;        ///< of the calls
  double added_seconds = 0;  ///< how much longer the first micro-batch takes
};

/// The reduction of the chunk's gradients over the data ranks, once in a step: what begins before
/// the stage's last backward is over, and what comes at the end.
struct ReductionTime {
  double beside_seconds = 0;          ///< of the calls that begin beside backwards
  double backward_added_seconds = 0;  ///< how much longer the chunk's last backward takes
  double left_seconds = 0;  ///< from the end of that backward until these calls have ended
  /// How much longer the stage's other micro-batches take beside what is left.
  double next_added_seconds = 0;
  double end_seconds = 0;      ///< of what comes at the end
  double multiprocessors = 0;  ///< of the GPU's that a running call takes, as a share
  /// Whether any other rank has the same parameters; else the gradients are only scaled.
  bool communicates = true;
};

/// Of one model chunk.
struct ChunkReplay {
  PartTime forward;   ///< of a usual micro-batch
  PartTime backward;  ///< with recompute
  /// How much longer the first one of a step takes, which has no other before it and none after it
  /// that hides the end of its communication; without gathers.
  double first_added_seconds = 0;
  GatherTime gathers;
  ReductionTime reduction;
  std::vector<MicroBatchWork> works = {};  ///< in the order of the host; if they are to be kept
};

/// When the host waits for the GPU, and what it does between.
struct HostWaits {
  double seconds = 0;                     ///< that it then needs until it goes on: see LaunchCost
  bool at_ends_of_parts = false;          ///< it waits at the end of each forward and each backward
  bool at_ends_of_micro_batches = false;  ///< of each backward alone
  /// How long before the step's first micro-batch it has last waited; empty: not at all.
  std::optional<double> before_step = 0;
  double operator_seconds = 0;  ///< that it takes for an operator or node, besides its kernels
  std::map<std::string, double> range_seconds = {};  ///< and for Python's ranges, by their names
  bool operator==(const HostWaits&) const = default;
};

/// A forward and a backward that run together, by their chunks.
struct ChunkPair {
  int64_t forward_chunk = 0, backward_chunk = 0;
  auto operator<=>(const ChunkPair&) const = default;
};

/// Plays such pairs one after the other: of a rank that runs its chunks in pieces. Like ChunkPlayer
/// it plays no prices twice.
class PairPlayer {
 public:
  /// `order` must outlive it.
  PairPlayer(const StepOrder& order,
             const PricedRecords& records,
             const ChunkPair& pair,
             const HostWaits& waits,
             bool attention_released_early);
  ~PairPlayer();
  PairPlayer(PairPlayer&&) noexcept;
  PairPlayer& operator=(PairPlayer&&) noexcept;

  /// What a pair takes, forward and backward together.
  PartTime play(const PricedRecords& records);
  bool plays(const ChunkPair& pair, const HostWaits& waits) const;

 private:
  class Laps;
  std::unique_ptr<Laps> laps_;
};

/// Plays a model chunk with the prices of one plan after the other. Laps all of whose prices are as
/// they were once before are not played again: plans that differ in their data ranks alone share
/// the usual micro-batches.
class ChunkPlayer {
 public:
  /// `order` must outlive it. Of `records` everything but WorkPrice is taken from here.
  ChunkPlayer(const StepOrder& order,
              const PricedRecords& records,
              int64_t chunk,
              const HostWaits& waits);
  ~ChunkPlayer();
  ChunkPlayer(ChunkPlayer&&) noexcept;
  ChunkPlayer& operator=(ChunkPlayer&&) noexcept;

  /// See replay_chunk(). `records` are the same ones with prices of their own.
  ChunkReplay play(const PricedRecords& records, bool keep_works = false);
  /// Whether it plays this chunk with these waits.
  bool plays(int64_t chunk, const HostWaits& waits) const;

 private:
  class Laps;
  std::unique_ptr<Laps> laps_;
};

/// Plays one micro-batch after the other through the model chunk, with what happens once in the
/// first and in the last: see StepOrder. What the GPU waits for the host counts as compute.
ChunkReplay replay_chunk(const StepOrder& order,
                         const PricedRecords& records,
                         int64_t chunk,
                         const HostWaits& waits,
                         bool keep_works = false);

}  // namespace estimator
