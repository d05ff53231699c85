// Trainer of plans in which the forward of a micro-batch runs together with the backward of another
// (combined_forward_backward_step() in megatron/core/pipeline_parallel/combined_1f1b.py, d98e8a6).
#include "estimator/schedule/piece_order.h"
#include "models/pipeline/in_flight.h"
#include "models/pipeline/trainer.h"

namespace models {

using estimator::Direction;
using estimator::Piece;
using estimator::PipelineStep;
using estimator::StepKind;

Trainer::InFlight Trainer::take_in_flight(const PipelineStep& step) {
  return std::move(in_flight_.extract(forward_number(step)).mapped());
}

Trainer::CombinedSteps Trainer::combined_steps(const Steps& steps, std::size_t i) const {
  if (steps[i].kind == StepKind::kBackward) return {.forward = nullptr, .backward = &steps[i]};
  estimator::ScheduleShape shape = schedule_shape(context_.plan);
  shape.micro_batches = micro_batches_;
  const bool is_pair = is_combined(shape, context_.coordinate.pipeline, steps, i);
  return {.forward = &steps[i], .backward = is_pair ? &steps[i + 1] : nullptr};
}

std::size_t Trainer::run_combined(int64_t iteration, const Steps& steps, std::size_t i) {
  if (!sending_tokens_) sending_tokens_.emplace(context_.device, &context_.observer);
  const CombinedSteps run = combined_steps(steps, i);
  const std::size_t count = run.forward && run.backward ? 2 : 1, last = i + count - 1;
  const auto direction_of = [](bool forward) {
    return forward ? Direction::kForward : Direction::kBackward;
  };
  {
    const DirectionScope direction(
        context_.observer, direction_of(run.forward), steps[i].micro_batch, steps[i].chunk);
    ForwardStart start;
    std::shared_ptr<ChunkPieces> forward;
    if (run.forward) {
      receive_before(steps, i);
      start_gathers_before(steps, i);
      start = begin_forward(iteration, *run.forward, count == 2);
      forward = std::make_shared<ChunkPieces>(
          stage_->chunk(run.forward->chunk), start.input, start.data, *sending_tokens_);
    }
    InFlight kept;
    if (run.backward) {
      const DirectionScope backward(
          context_.observer, Direction::kBackward, run.backward->micro_batch, run.backward->chunk);
      receive_before(steps, last);
      start_reducing_in(*run.backward);
      kept = take_in_flight(*run.backward);
      kept.let_go_of_graph();
      kept.pieces->start_backward(begin_backward(*run.backward));
    }
    run_pieces(run, forward.get(), kept.pieces.get());
    if (run.forward) {
      ChunkPieces& made = *forward;
      made.end_forward();
      end_forward(*run.forward,
                  start,
                  {.output = made.take_output(), .logits = {}},
                  count == 2,
                  std::move(forward));
      receive_ahead(steps, i);
    }
    if (run.backward) {
      const DirectionScope backward(
          context_.observer, Direction::kBackward, run.backward->micro_batch, run.backward->chunk);
      kept.pieces->end_backward();
      if (kept.input.defined()) kept.input.mutable_grad() = kept.pieces->take_input_gradient();
      end_backward(*run.backward, kept);
      receive_ahead(steps, last);
    }
  }
  if (run.forward) context_.observer.forward_finished(forward_number(*run.forward));
  if (run.backward) context_.observer.backward_finished(forward_number(*run.backward));
  return count;
}

void Trainer::run_pieces(const CombinedSteps& combined,
                         ChunkPieces* forward,
                         ChunkPieces* backward) {
  const auto layers_of = [](const ChunkPieces* pieces) {
    return pieces ? std::optional(pieces->layers()) : std::nullopt;
  };
  const auto order = estimator::piece_order(
      {.forward_layers = layers_of(forward),
       .backward_layers = layers_of(backward),
       .attention_released_early = context_.plan.parallelism.ep_overlap_early_attn_memory_release});
  if (forward) forward->start_forward();
  for (const Piece& piece : order) {
    ChunkPieces& of = piece.is_backward ? *backward : *forward;
    if (of.has(piece)) {
      const PipelineStep& step = piece.is_backward ? *combined.backward : *combined.forward;
      const PieceScope scope(context_.observer,
                             piece.is_backward ? Direction::kBackward : Direction::kForward,
                             step.micro_batch,
                             step.chunk,
                             piece.number());
      of.run(piece);
    }
    of.ended(piece);
  }
}

}  // namespace models
