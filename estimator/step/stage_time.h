// The times of one stage, from the profile of one of its ranks: forward and backward of one
// micro-batch, the bytes that go to the neighbour stages, and what happens once in a step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/communication/port_use.h"
#include "estimator/compute/compute_time.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/step/chunk_replay.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// A kernel or call of one micro-batch, as it is shown: seconds since the begin of its forward or
/// backward.
struct ShownWork {
  Direction direction = Direction::kForward;
  std::string module;
  std::string name;
  std::string category;
  std::optional<GroupKind> group = {};  ///< of a collective
  int64_t bytes = 0;
  int64_t stream = 0;
  double begin_seconds = 0, end_seconds = 0;
};

/// What a forward or backward adds to the memory that is allocated as it begins; below 0: frees.
struct PartMemoryChange {
  std::vector<int64_t> largest_bytes;  ///< within each of a few equal spans of its works
  int64_t end_bytes = 0;
};

/// Times of one model chunk of a stage.
struct ChunkTime {
  PartTime forward;   ///< of one micro-batch
  PartTime backward;  ///< of one micro-batch, with recompute
  GatherTime gathers;
  ReductionTime reduction;
  std::vector<ShownWork> works = {};  ///< in the order of the host; if they are to be kept
  std::optional<PartMemoryChange> forward_memory = {}, backward_memory = {};  ///< the same
  /// Its forward together with the backward of another chunk, by that one's number, where they run
  /// together.
  std::map<int64_t, PartTime> pairs = {};
};

/// What a stage's work needs of its board (board_power.h): in each micro-batch, and once in a step.
struct StageEnergy {
  double joules_per_micro_batch = 0, joules_per_step = 0;  ///< at the rates
  /// Of products and attention, as they are priced.
  double arithmetic_seconds_per_micro_batch = 0, arithmetic_seconds_per_step = 0;

  /// Of a step of so many micro-batches that takes `seconds`.
  StepEnergy of_step(int64_t micro_batches, double seconds) const;
};

/// Times within one stage. The replay adds the time of transfers between stages.
struct StageTime {
  std::vector<ChunkTime> chunks;
  /// How much longer the step's first micro-batch takes: the host is no longer far ahead, or, where
  /// it does not wait, FSDP2's first gather and last reduction are hidden by nothing.
  PartTime first_added = {};
  /// The gathers of ChunkTime begin as the step does, one chunk's after the other's; else each with
  /// the chunk's first forward.
  bool gathers_begin_with_step = false;
  /// How long before the step the first of them begins, while the optimizer updates other chunks
  /// (--overlap-param-gather-with-optimizer-step); in pieces of a search it is not counted.
  double first_gather_ahead_seconds = 0;
  double gather_seconds = 0;        ///< of updated parameters, at the end of the step
  int64_t send_forward_bytes = 0;   ///< activations of one micro-batch to the next piece
  int64_t send_backward_bytes = 0;  ///< gradients of one micro-batch to the piece before
  /// The end of the step: communication for tied embeddings and the gradient norm, and all kernels
  /// outside forward and backward.
  PartTime step_end;
  StageEnergy energy;
  std::optional<OffloadTime> offload;             ///< the host's part of the step's end
  std::optional<int64_t> allocated_before_bytes;  ///< as the step begins; if works are kept

  /// Times of one micro-batch through all chunks.
  PartTime forward() const;
  PartTime backward() const;
  /// When the gathers of a chunk begin if the first ones begin with the step; the step begins at 0.
  double gathers_begin_seconds(std::size_t chunk) const;
};

/// The plan and the hardware for which the times of stages are computed.
struct StageTarget {
  const Plan& plan;
  const ComputeTarget& compute;
  const ParallelLayout& layout;
  const Fabric& fabric;
  bool keep_works = false;  ///< ChunkTime::works
};

/// Of a rank, what is its own in each plan for which one profile stands.
struct StageRecords {
  int64_t rank = 0;
  int64_t stage = 0;
  int64_t chunks = 1;          ///< model chunks
  double optimizer_share = 1;  ///< of the FLOPs and bytes of the profile's optimizer step
  std::vector<CollectiveRecord> collectives;  ///< those of the profile, in their order
};

/// Prices a profile for one plan after the other, whose compute targets differ in their slowdown
/// and speed alone. What the plans have in common it computes once: kernels, and the laps of
/// chunk_replay.h whose prices are the same.
class StagePricer {
 public:
  /// `profile` must outlive it.
  explicit StagePricer(const RankProfile& profile);
  ~StagePricer();
  StagePricer(StagePricer&&) noexcept;

  /// See stage_time().
  StageTime time(const StageRecords& records, const StageTarget& target);

 private:
  class Sum;
  std::unique_ptr<Sum> sum_;
};

/// What a chunk does comes from a replay of the order in which the rank ran it (chunk_replay.h):
/// what runs beside what is what its streams say. Sends and receives between stages count as bytes
/// only. The end of the step is the sum of its records; if the host issues it more slowly than the
/// GPU runs it, the host's time counts.
///
/// What a record does not assign to a chunk counts in the first one. A profile without an order has
/// its records one after the other.
///
/// Kernel times come from the roofline; measured times would replace them here.
StageTime stage_time(const RankProfile& profile, const StageTarget& target);

}  // namespace estimator
