// What one profile says of its stage's time: forward and backward of one micro-batch, what passes
// to the neighbours, and what happens once for each step.
#pragma once

#include <optional>
#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/communication/port_use.h"
#include "estimator/compute/compute_time.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// Seconds of a part of the step: kernels, and communication that the kernels wait for, by axis.
struct PartTime {
  double compute_seconds = 0;
  ExposedCommunication communication_seconds;

  double total_seconds() const;
};

/// The calls of one chunk that run once for each step over the data ranks, one for each bucket. The
/// buckets count as equal, and as filled (or needed) after equal parts of the work beside them.
struct BucketTime {
  double sum_seconds = 0;
  int64_t buckets = 0;
  bool overlappable = false;  ///< they run beside compute, one after the other
  /// What a running call takes of the GPU's compute from the work beside it.
  double compute_share = 0;
  /// Of the GPU's ports, and what the work takes longer for each second beside a running call,
  /// which takes longer by as much, because calls of the work need the same ports.
  PortUse use;
  double port_share = 0;

  /// Seconds of the calls that pass while the last `work_seconds` fill the buckets; the rest comes
  /// after them.
  double beside(double work_seconds) const;

  /// When the last bucket is reduced: the work that fills them ends at `end_seconds`, and what the
  /// network did before them at `free_seconds`. The last bucket is full when the work ends
  /// (Megatron-LM's DDP, distributed_data_parallel.py @d98e8a6).
  double reduced_at(double end_seconds, double work_seconds, double free_seconds) const;

  /// When work that needs bucket after bucket can start so that it never waits, at 0 or later; the
  /// network begins them at `free_seconds`, which may be before 0. The work is longer by what they
  /// take of it, which counts here as a later start.
  double ready_at(double free_seconds, double work_seconds) const;
};

/// One piece of the model on a stage.
struct ChunkTime {
  PartTime forward;   ///< of one micro-batch
  PartTime backward;  ///< of one micro-batch, with recompute
  BucketTime reduce_gradients;
  BucketTime gather_parameters;
};

/// Nothing here is of more than one stage; times between stages are the replay's.
struct StageTime {
  std::vector<ChunkTime> chunks;
  int64_t send_forward_bytes = 0;   ///< activations of one micro-batch to the next piece
  int64_t send_backward_bytes = 0;  ///< gradients of one micro-batch to the piece before
  /// The rest of the step's end: tied embeddings, the gradient norm (communication), and all
  /// kernels outside forward and backward.
  PartTime step_end;
  std::optional<OffloadTime> offload;  ///< what of the step's end is the host's

  /// Of one micro-batch through all chunks.
  PartTime forward() const;
  PartTime backward() const;
};

/// What stages are timed for.
struct StageTarget {
  const Plan& plan;
  const ComputeTarget& compute;
  const ParallelLayout& layout;
  const Fabric& fabric;
};

/// Adds up a profile's records. Records count one iteration as planned; what belongs to a
/// micro-batch is divided by the plan's micro-batches. Sends and receives between stages count as
/// bytes only. Messages of the context ranks' ring travel beside a step of attention, as
/// TransformerEngine sends them. A call that may overlap but is none of these counts in full.
///
/// Records are of all chunks together. The embedding is in the first, the head in the last, and all
/// else is shared out by layers, which are alike; buckets by parameters.
///
/// Kernel times are the roofline's; this is the place where a measured time would replace them. In
/// a part that the host issues more slowly than the GPU works, the host's time counts: as the order
/// of the records is lost, the larger of the two sums stands for the queue between them.
StageTime stage_time(const RankProfile& profile, const StageTarget& target);

/// Adds `times` x `part` to `sum`.
void add(PartTime& sum, const PartTime& part, double times = 1);
void add(ExposedCommunication& sum, const ExposedCommunication& part, double times = 1);

/// The axis that a group's calls count for: kDataContext is data, kEmbedding is pipeline.
double& seconds_of_axis(ExposedCommunication& communication, GroupKind group);

double sum_of(const ExposedCommunication& communication);

}  // namespace estimator
