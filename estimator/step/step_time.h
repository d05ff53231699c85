// One optimizer step of the whole pipeline, put together from its stages.
//
// 1. Every stage starts at 0, with the last step's optimizer done on all of them. Where the plan
//    overlaps it, the updated parameters are still being gathered, chunk by chunk, since the
//    stage's own optimizer was done; a chunk's first forward waits for the buckets that it needs.
// 2. The schedule is replayed over all stages with their own times and transfers.
// 3. Each stage reduces its gradients, bucket by bucket beside the last backward of each chunk
//    where the plan overlaps it (of Megatron-LM's later stages only where it interleaves), else all
//    when its steps have ended. Where the reduction needs a port that calls of that backward need,
//    or the send of its gradients, all of them take longer.
// 4. When the slowest stage is ready (the gradient norm needs all of them), every stage ends its
//    step: norm, optimizer, and the gather of what is not overlapped. The slowest end counts.
// 5. Data loaders work ahead: where they take longer for the micro-batches of a step than the step
//    itself, it waits for them.
#pragma once

#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/schedule/schedule_replay.h"
#include "estimator/step/stage_time.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// The replay's input: a duration for each chunk of each stage, stage x chunks + chunk. `stages`
/// has the times of each pipeline stage, in order.
std::vector<ChunkDuration> chunk_durations(const ScheduleShape& shape,
                                           const std::vector<StageTime>& stages,
                                           const ParallelLayout& layout,
                                           const Fabric& fabric);

/// When the overlapped gather of each stage's parameters begins: 0 for the stage whose step ended
/// last, before that for the others, as their own optimizer was done earlier.
std::vector<double> gather_begins(const std::vector<StageTime>& stages);

/// Megatron-LM and DeepSpeed wait for a transfer before they go on, unless the former interleaves
/// and is told to overlap; PyTorch's pipelining goes on. A host that waits for every kernel waits.
bool overlaps_sends(const Plan& plan);

/// The calls of one chunk over the data ranks, one after the other, as they run in a step.
struct ChunkCalls {
  int64_t chunk = 0;
  double begin_seconds = 0;
  double end_seconds = 0;
};

struct GradientReduction {
  std::vector<ChunkCalls> calls;  ///< in their order
  double ready_seconds = 0;       ///< when the stage is through, compute that was slowed included
};

/// Of a stage that ends its steps at `end_seconds`; `durations` and `gradients_ready` are of its
/// chunks. Where the
/// buckets of a chunk leave gaps, its calls are shown without them, up to their true end.
GradientReduction reduce_gradients(const StageTime& stage,
                                   const ChunkDuration* durations,
                                   const double* gradients_ready,
                                   double end_seconds);

/// What every stage does when all are ready: norm, optimizer, and the gathers that are not
/// overlapped.
double end_of_step(const StageTime& stage);
double gather_at_the_end(const StageTime& stage);

/// What a step of `step_seconds` waits for the data loader, step after step.
double data_loading_wait(const Plan& plan, double step_seconds);

/// The parts are those of the stage that is ready last; they add up to iteration_seconds. Exposed
/// data communication is what that stage would be ready earlier without it, slowed compute
/// included; exposed pipeline communication what it would end earlier if transfers took no time.
/// The rest of its waiting is the bubble.
StepTime step_time(const Plan& plan,
                   const ParallelLayout& layout,
                   const Fabric& fabric,
                   const std::vector<StageTime>& stages);

}  // namespace estimator
