// The time of one optimizer step of the whole pipeline, from the times of its stages.
//
// 1. Every stage starts at 0, when all stages have done the optimizer of the step before. If the
//    plan overlaps the parameter gather, a chunk's first forward waits for the buckets that it
//    needs; their gathers begin with the step, or with this forward.
// 2. The schedule is replayed over all stages with their own times and transfers.
// 3. Each stage reduces its gradients: beside its last backwards what its order has there
//    (chunk_replay.h), the rest when its steps have ended.
// 4. When the slowest stage is ready (the gradient norm needs all stages), every stage ends its
//    step: norm, optimizer, and the parameter gather if it is not overlapped. The slowest stage
//    decides.
// 5. Data loaders work ahead. If they take longer for the micro-batches of a step than the step
//    itself takes, the step waits for them.
#pragma once

#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/schedule/schedule_replay.h"
#include "estimator/step/stage_time.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// The input of the replay: a duration for each chunk of each stage, at the index stage x chunks +
/// chunk. `stages` has the times of each pipeline stage, in order.
std::vector<ChunkDuration> chunk_durations(const ScheduleShape& shape,
                                           const std::vector<StageTime>& stages,
                                           const ParallelLayout& layout,
                                           const Fabric& fabric);

/// Whether a stage goes on while it sends. Megatron-LM and DeepSpeed wait until a transfer has
/// ended, except Megatron-LM with interleaving and overlap_p2p_communication; PyTorch's pipelining
/// goes on. With launch_blocking the host waits for every kernel, so also for transfers.
bool overlaps_sends(const Plan& plan);

/// The calls of one chunk over the data ranks, which run one after the other: when the first one
/// begins and the last one ends.
struct ChunkCalls {
  int64_t chunk = 0;
  double begin_seconds = 0;
  double end_seconds = 0;
};

struct GradientReduction {
  std::vector<ChunkCalls> calls;  ///< in the order in which they run
  double ready_seconds = 0;       ///< when all is reduced; includes the time of slowed compute
};

/// The reduction of a stage whose steps end at `end_seconds`. `gradients_ready` points to the times
/// of its chunks. The calls of a chunk that overlap are shown without the gaps
/// between them; their end is right.
GradientReduction reduce_gradients(const StageTime& stage,
                                   const double* gradients_ready,
                                   double end_seconds);

/// Seconds of what every stage does when all are ready: norm, optimizer, and the gathers that are
/// not overlapped.
double end_of_step(const StageTime& stage);

/// How long each step of `step_seconds` waits for the data loader.
double data_loading_wait(const Plan& plan, double step_seconds);

/// A step, and of each stage the seconds in which it waits for others for at least a given time.
struct PlayedStep {
  StepTime time;
  std::vector<double> long_wait_seconds;

  double seconds_without_long_waits(std::size_t stage) const {
    return time.iteration_seconds - long_wait_seconds[stage];
  }
};

/// The parts of the time are those of the stage that is busy longest, and add up to
/// iteration_seconds. Exposed data communication is the time by which that stage would be ready
/// earlier without it; this includes compute that it slows. Exposed pipeline communication is the
/// time by which the stage would end earlier if transfers took no time. The rest of its waiting
/// time, also at its end, is the bubble. `long_wait` is in seconds.
PlayedStep play_step(const Plan& plan,
                     const ParallelLayout& layout,
                     const Fabric& fabric,
                     const std::vector<StageTime>& stages,
                     double long_wait);

/// The time of play_step().
StepTime step_time(const Plan& plan,
                   const ParallelLayout& layout,
                   const Fabric& fabric,
                   const std::vector<StageTime>& stages);

}  // namespace estimator
