// A pipeline schedule is data: a list of the steps of each stage, in order. The shard executes the
// list of its stage, so that it really holds as many activations as a rank would; the estimator
// computes the time of the lists of all stages.
//
// The model is cut into stages x chunks pieces, the virtual stages; a stage holds `chunks` of them.
// As a rule the pieces go round the stages in a loop (chunk c of stage r is piece c p + r). In the
// schedules with a V they go forward through all stages and then back (chunk 1 of stage r is piece
// 2 p - 1 - r).
//
// The schedules, for stage r of p stages, m micro-batches and v chunks:
//   GPipe             all forwards, then all backwards (Huang et al. 2019)
//   1F1B              p - r - 1 warm-up forwards, then a forward and a backward in turn, then the
//                     remaining backwards (Narayanan et al. 2021, PipeDream-Flush)
//   interleaved 1F1B  1F1B with v > 1: 2 (p - r - 1) + (v - 1) g warm-up forwards; groups of g
//                     micro-batches go through chunk after chunk (Megatron-LM's
//                     core/pipeline_parallel/schedules.py: get_pp_rank_microbatches,
//                     get_schedule_table)
//   combined          1F1B, interleaved if there are several stages, with one more warm-up forward;
//                     then the forward and the backward of a pair run together, piece by piece
//                     (piece_order.h; Megatron-LM's combined_1f1b.py)
//   ZB-H1             1F1B with backward in two parts, of which the one for the weights comes r
//                     micro-batches later (Qi et al. 2024; with several chunks as PyTorch's
//                     ScheduleInterleavedZeroBubble)
//   ZB-V, DualPipeV   two chunks in a V, with backward in two parts (Qi et al. 2024, "Controllable
//                     memory"; DeepSeek's DualPipe; as in PyTorch 2.11, schedules.py). Steps that
//                     DualPipe overlaps in pairs run one after the other here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

/// A backward is one step, or two: first the gradient of the input, for which the stage before
/// waits, and later the gradient of the weights.
enum class StepKind : uint8_t { kForward, kBackward, kBackwardInput, kBackwardWeight };

struct PipelineStep {
  StepKind kind = StepKind::kForward;
  int32_t micro_batch = 0;
  int32_t chunk = 0;  ///< of the stage, 0 <= chunk < chunks
  bool operator==(const PipelineStep&) const = default;
};

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::kOneForwardOneBackward;
  int64_t stages = 1;
  int64_t micro_batches = 1;
  int64_t chunks = 1;      ///< v: model chunks (virtual stages) of each stage
  int64_t group_size = 0;  ///< g, at least p; 0: p
  /// The last stage does something at its end for micro-batches of the whole step.
  bool last_stage_defers = false;
  /// After the warm-up a forward and the backward after it are one step.
  bool combines_pairs = false;

  int64_t virtual_stages() const { return stages * chunks; }
  /// Micro-batches that go through one chunk before the next chunk's turn.
  int64_t group() const { return group_size == 0 ? stages : group_size; }
};

/// The schedule of a resolved plan.
ScheduleShape schedule_shape(const Plan& plan);

/// The piece of the model that chunk `chunk` of `stage` is, 0 <= piece < virtual_stages().
int64_t virtual_stage(const ScheduleShape& shape, int64_t stage, int64_t chunk);

/// The stage that holds the piece `virtual_stage`.
int64_t stage_of(const ScheduleShape& shape, int64_t virtual_stage);

/// The steps of `stage` (0 <= stage < stages). Throws std::logic_error for a shape that the kind of
/// schedule does not allow: ZB-V and DualPipeV need 2 chunks, DualPipeV needs at least 2 p
/// micro-batches, and GPipe needs 1 chunk.
std::vector<PipelineStep> stage_steps(const ScheduleShape& shape, int64_t stage);

/// Number of forwards of `stage` before its first backward, for schedules that consist of a warm-up
/// followed by pairs of a forward and a backward: where the pairs begin among the steps.
int64_t warm_up_forwards(const ScheduleShape& shape, int64_t stage);

/// Whether steps[i] of the stage's is a forward that runs together with the backward after it.
bool is_combined(const ScheduleShape& shape,
                 int64_t stage,
                 std::span<const PipelineStep> steps,
                 std::size_t i);

/// The steps of all stages, one list after the other.
struct PipelineSchedule {
  ScheduleShape shape;
  std::vector<PipelineStep> steps;
  std::vector<std::size_t> first_step;  ///< index for each stage; at the end steps.size()

  std::span<const PipelineStep> steps_of(int64_t stage) const;
};
PipelineSchedule make_schedule(const ScheduleShape& shape);

/// The most forwards whose activations `stage` holds at the same time; a forward is one micro-batch
/// through one chunk. GPipe holds m, 1F1B min(m, p - r), interleaved 1F1B min(m v, 2 (p - r - 1) +
/// (v - 1) g + 1). If the backward has two parts, activations count until the first of them.
int64_t forwards_in_flight(const ScheduleShape& shape, int64_t stage);

/// How many micro-batches of the plan a rank must run to reach its peak of memory. With one chunk
/// these are those in flight and two more. Interleaved, they are the warm-up and one whole group
/// through all chunks; after that the same chunks are in flight again. A last stage that defers
/// work runs all of them.
int64_t micro_batches_to_execute(const ScheduleShape& shape, int64_t stage);

}  // namespace estimator
