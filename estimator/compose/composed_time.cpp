#include "estimator/compose/composed_stage.h"

#include <algorithm>

namespace estimator {
namespace {

/// On the line from `low` to `high`; `share` may lie outside of 0 to 1.
double between(double low, double high, double share) {
  return std::max(0.0, low + (high - low) * share);
}

PartTime between(const PartTime& low, const PartTime& high, double share) {
  const ExposedCommunication &a = low.communication_seconds, &b = high.communication_seconds;
  return {.compute_seconds = between(low.compute_seconds, high.compute_seconds, share),
          .communication_seconds = {.tensor = between(a.tensor, b.tensor, share),
                                    .pipeline = between(a.pipeline, b.pipeline, share),
                                    .data = between(a.data, b.data, share),
                                    .context = between(a.context, b.context, share),
                                    .expert = between(a.expert, b.expert, share)}};
}

GatherTime between(const GatherTime& low, const GatherTime& high, double share) {
  return {.seconds = between(low.seconds, high.seconds, share),
          .added_seconds = between(low.added_seconds, high.added_seconds, share)};
}

StageEnergy between(const StageEnergy& low, const StageEnergy& high, double share) {
  const auto at = [&](double StageEnergy::*value) {
    return between(low.*value, high.*value, share);
  };
  return {
      .joules_per_micro_batch = at(&StageEnergy::joules_per_micro_batch),
      .joules_per_step = at(&StageEnergy::joules_per_step),
      .arithmetic_seconds_per_micro_batch = at(&StageEnergy::arithmetic_seconds_per_micro_batch),
      .arithmetic_seconds_per_step = at(&StageEnergy::arithmetic_seconds_per_step)};
}

ReductionTime between(const ReductionTime& low, const ReductionTime& high, double share) {
  const auto at = [&](double ReductionTime::*seconds) {
    return between(low.*seconds, high.*seconds, share);
  };
  return {.beside_seconds = at(&ReductionTime::beside_seconds),
          .backward_added_seconds = at(&ReductionTime::backward_added_seconds),
          .left_seconds = at(&ReductionTime::left_seconds),
          .next_added_seconds = at(&ReductionTime::next_added_seconds),
          .end_seconds = at(&ReductionTime::end_seconds),
          .multiprocessors = high.multiprocessors,
          .communicates = high.communicates};
}

ChunkTime between(const ChunkTime& low, const ChunkTime& high, double share) {
  std::map<int64_t, PartTime> pairs;
  for (const auto& [chunk, pair] : low.pairs) {
    pairs[chunk] = between(pair, high.pairs.at(chunk), share);
  }
  return {.forward = between(low.forward, high.forward, share),
          .backward = between(low.backward, high.backward, share),
          .gathers = between(low.gathers, high.gathers, share),
          .reduction = between(low.reduction, high.reduction, share),
          .pairs = std::move(pairs)};
}

/// How far the host is ahead of the device grows within a chunk, and the line has all that it
/// gains: a chunk of fewer layers than the small piece takes no less than its part of that one.
void take_at_least(ChunkTime& chunk, const ChunkTime& piece, double part) {
  for (PartTime ChunkTime::*direction : {&ChunkTime::forward, &ChunkTime::backward}) {
    double& seconds = (chunk.*direction).compute_seconds;
    seconds = std::max(seconds, part * (piece.*direction).compute_seconds);
  }
}

/// Pieces do not interleave. A stage that does reduces a later chunk when its last backward ends,
/// in one bucket, beside the backwards of the chunks before it, which it slows by the
/// multiprocessors that it takes.
void begin_in_backward(ReductionTime& reduction) {
  reduction.next_added_seconds += reduction.multiprocessors * reduction.end_seconds;
  reduction.beside_seconds += reduction.end_seconds;
  reduction.left_seconds += reduction.end_seconds;
  reduction.end_seconds = 0;
}

/// The first chunk of such a stage, which ends last, is reduced when all backwards have ended.
void begin_at_end(ReductionTime& reduction) {
  reduction.end_seconds += reduction.beside_seconds;
  reduction.beside_seconds = reduction.left_seconds = 0;
  reduction.backward_added_seconds = reduction.next_added_seconds = 0;
}

void interleave(ReductionTime& reduction, bool is_of_first_chunk) {
  is_of_first_chunk ? begin_at_end(reduction) : begin_in_backward(reduction);
}

}  // namespace

StageTime at_speed(const StageTime& usual, const StageTime& slow, double speed) {
  const double share = (1 / speed - 1) / (1 / kSlowSpeed - 1);
  StageTime stage = usual;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    stage.chunks[c] = between(usual.chunks[c], slow.chunks[c], share);
  }
  stage.first_added = between(usual.first_added, slow.first_added, share);
  stage.gather_seconds = between(usual.gather_seconds, slow.gather_seconds, share);
  stage.step_end = between(usual.step_end, slow.step_end, share);
  const StageEnergy slowed = between(usual.energy, slow.energy, share);
  stage.energy.arithmetic_seconds_per_micro_batch = slowed.arithmetic_seconds_per_micro_batch;
  stage.energy.arithmetic_seconds_per_step = slowed.arithmetic_seconds_per_step;
  return stage;
}

StageTime PricedPieces::time(const StageWish& wish) const {
  StageTime stage;
  int64_t layers = 0;
  for (std::size_t c = 0; c < wish.chunks.size(); ++c) {
    const auto& [low, high] = times.at(wish.chunks[c]);
    const auto of_chunk = static_cast<double>(wish.layers[c]);
    const ChunkTime &small = low.chunks.front(), &large = high.chunks.front();
    stage.chunks.push_back(between(small, large, share_of_way(of_chunk)));
    const double part = of_chunk / static_cast<double>(kPieceLayers.front());
    if (part < 1) take_at_least(stage.chunks.back(), small, part);
    if (wish.chunks.size() > 1 && wish.overlaps_reduction) {
      interleave(stage.chunks.back().reduction, c == 0);
    }
    layers += wish.layers[c];
  }
  const auto& [low, high] = times.at(wish.place);
  const double of_stage = share_of_way(static_cast<double>(layers));
  stage.first_added = between(low.first_added, high.first_added, of_stage);
  stage.gathers_begin_with_step = high.gathers_begin_with_step || wish.chunks.size() > 1;
  stage.gather_seconds = between(low.gather_seconds, high.gather_seconds, of_stage);
  stage.step_end = between(low.step_end, high.step_end, of_stage);
  stage.energy = between(low.energy, high.energy, of_stage);
  // The last stage of an interleaved pipeline sends forward too, and the first one backward.
  const StageTime& sender = wish.chunks.size() > 1 ? times.at(StagePlace::kMiddle).back() : high;
  stage.send_forward_bytes = sender.send_forward_bytes;
  stage.send_backward_bytes = sender.send_backward_bytes;
  return stage;
}

}  // namespace estimator
