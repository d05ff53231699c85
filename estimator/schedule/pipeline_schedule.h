// A pipeline schedule is data: what one stage does, in order. The shard executes the list of its
// stage, so the number of activations it holds is real; the estimator times the lists of all
// stages.
//
// The model is cut into stages x chunks pieces, its virtual stages; a stage holds `chunks` of them.
// They lie in a loop (chunk c of stage r is piece c p + r) or, for the schedules that say V, there
// and back (chunk 1 of stage r is piece 2 p - 1 - r).
//
// Orders, of p stages, m micro-batches and v chunks:
//   GPipe             all forwards, then all backwards (Huang et al. 2019)
//   1F1B              p - r - 1 warm-up forwards, then a forward and a backward in turn, then the
//                     remaining backwards (Narayanan et al. 2021, PipeDream-Flush)
//   interleaved 1F1B  1F1B with v > 1: 2 (p - r - 1) + (v - 1) g warm-up forwards; groups of g
//                     micro-batches go through chunk after chunk (Megatron-LM's
//                     core/pipeline_parallel/schedules.py: get_pp_rank_microbatches,
//                     get_schedule_table)
//   ZB-H1             1F1B with backward in two parts, the weights' put off by r micro-batches (Qi
//                     et al. 2024; with chunks as PyTorch's ScheduleInterleavedZeroBubble)
//   ZB-V, DualPipeV   V of two chunks with backward in two parts (Qi et al. 2024, "Controllable
//                     memory"; DeepSeek's DualPipe; as PyTorch's schedules.py of 2.11). The pairs
//                     that DualPipe overlaps follow each other here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

/// A backward is whole, or in two parts: the gradient of the input, which the stage before waits
/// for, and later that of the weights.
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
  int64_t chunks = 1;      ///< virtual stages of a stage
  int64_t group_size = 0;  ///< g, at least p; 0: p

  int64_t virtual_stages() const { return stages * chunks; }
  /// Micro-batches that go through one chunk before the next chunk's turn.
  int64_t group() const { return group_size == 0 ? stages : group_size; }
};

/// The schedule of a resolved plan.
ScheduleShape schedule_shape(const Plan& plan);

/// Which piece of the model chunk `chunk` of `stage` is, 0 <= piece < virtual_stages().
int64_t virtual_stage(const ScheduleShape& shape, int64_t stage, int64_t chunk);

/// The stage that holds a piece.
int64_t stage_of(const ScheduleShape& shape, int64_t virtual_stage);

/// The steps of `stage` (0 <= stage < stages). Throws std::logic_error for a shape that its kind
/// does not have: ZB-V and DualPipeV take 2 chunks, DualPipeV at least 2 p micro-batches, GPipe 1
/// chunk.
std::vector<PipelineStep> stage_steps(const ScheduleShape& shape, int64_t stage);

/// The steps of all stages, one list after the other.
struct PipelineSchedule {
  ScheduleShape shape;
  std::vector<PipelineStep> steps;
  std::vector<std::size_t> first_step;  ///< of each stage, and the end of the last one's

  std::span<const PipelineStep> steps_of(int64_t stage) const;
};
PipelineSchedule make_schedule(const ScheduleShape& shape);

/// Forwards whose activations `stage` holds at once, at most: each is of one micro-batch through
/// one chunk. GPipe m, 1F1B min(m, p - r), interleaved min(m v, 2 (p - r - 1) + (v - 1) g + 1);
/// with backward in two parts, until the first of them.
int64_t forwards_in_flight(const ScheduleShape& shape, int64_t stage);

/// How many micro-batches of the plan a rank needs to run to reach its peak. With one chunk: those
/// in flight and two. Interleaved: the warm-up and one whole group through all chunks, after which
/// the same chunks are in flight again.
int64_t micro_batches_to_execute(const ScheduleShape& shape, int64_t stage);

}  // namespace estimator
