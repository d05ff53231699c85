// What one profile says of its stage's time: forward and backward of one micro-batch, what passes
// to the neighbours, and what happens once for each step.
#pragma once

#include "estimator/cluster_estimate.h"
#include "estimator/compute_time.h"
#include "estimator/fabric.h"
#include "estimator/parallel_layout.h"
#include "estimator/rank_profile.h"

namespace estimator {

/// Seconds of a part of the step: kernels, and communication that the kernels wait for, by axis.
struct PartTime {
  double compute_seconds = 0;
  ExposedCommunication communication_seconds;

  double total_seconds() const;
};

/// The calls that run once for each step over the data ranks, one for each bucket.
struct BucketTime {
  double sum_seconds = 0;
  int64_t buckets = 0;
  bool overlappable = false;  ///< all but one may hide behind compute

  /// What is left of the sum when `behind_seconds` of work run beside it. Not overlappable: all of
  /// it. Else one mean bucket that has nothing to hide behind (the last to be filled, or the first
  /// to be needed), and what of the others is longer than the work (Megatron-LM's DDP,
  /// distributed_data_parallel.py @d98e8a6).
  double exposed_seconds(double behind_seconds) const;
};

/// Nothing here is of more than one stage; times between stages are the replay's.
struct StageTime {
  PartTime forward;                 ///< of one micro-batch
  PartTime backward;                ///< of one micro-batch, with recompute
  int64_t send_forward_bytes = 0;   ///< activations of one micro-batch to the next stage
  int64_t send_backward_bytes = 0;  ///< gradients of one micro-batch to the stage before
  BucketTime reduce_gradients;
  BucketTime gather_parameters;
  /// The rest of the step's end: tied embeddings, the gradient norm (communication), and all
  /// kernels outside forward and backward.
  PartTime step_end;
};

/// Adds up a profile's records. Records count one iteration as planned; what belongs to a
/// micro-batch is divided by the plan's micro-batches. Sends and receives count as bytes only. A
/// call that may overlap but is none of the two bucket kinds counts in full.
///
/// Kernel times are the roofline's; this is the place where a measured time would replace them.
StageTime stage_time(const RankProfile& profile,
                     const ComputeTarget& target,
                     const ParallelLayout& layout,
                     const Fabric& fabric);

/// The axis that a group's calls count for: kDataContext is data, kEmbedding is pipeline.
double& seconds_of_axis(ExposedCommunication& communication, GroupKind group);

double sum_of(const ExposedCommunication& communication);

}  // namespace estimator
