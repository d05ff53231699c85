#include "estimator/compose/composed_stage.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {
namespace {

constexpr std::size_t kSmall = 0, kLarge = 1;

constexpr const char* kBuildPhase = "build_model";

/// What the data ranks share of the lasting state in a phase. The optimizer's own is made in its
/// first step.
double shared_state(const Plan& plan, const ModelStateRecord& state, const std::string& phase) {
  const int64_t zero = plan.parallelism.zero_stage;
  const bool is_built = phase != kBuildPhase;
  const bool has_stepped = phase.find("iteration_") == 0 && phase != "iteration_0.forward_backward";
  int64_t bytes = 0;
  if (zero >= 1 && is_built) bytes += state.master_weight_bytes;
  if (zero >= 1 && has_stepped) bytes += state.optimizer_state_bytes;
  return static_cast<double>(bytes);
}

/// Of the allocated bytes, where chunks differ (see StageMemory).
constexpr double kMostOffOfUneven = 0.02;

bool has_uneven_chunks(const StageWish& wish) {
  return std::adjacent_find(wish.layers.begin(), wish.layers.end(), std::not_equal_to<>()) !=
         wish.layers.end();
}

/// Of the bytes of activations in flight, and of one more layer: more is noise of the pieces.
constexpr double kMostLost = 0.06;

std::size_t size_of(const PieceRun& run) {
  return run.layers == kPieceLayers[kSmall] ? kSmall : kLarge;
}

/// Of the way from the small piece to the large one.
double share_of(double layers) {
  const auto small = static_cast<double>(kPieceLayers[kSmall]);
  const auto large = static_cast<double>(kPieceLayers[kLarge]);
  return (layers - small) / (large - small);
}

double line_at(double low, double high, double layers) {
  return low + (high - low) * share_of(layers);
}

/// On the line from `low` to `high`; `share` may lie outside of 0 to 1.
double between(double low, double high, double share) {
  return std::max(0.0, low + (high - low) * share);
}

/// `low` at the smaller and `high` at the larger number of layers.
double at_layers(double low, double high, double layers) {
  return between(low, high, share_of(layers));
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
  return {.forward = between(low.forward, high.forward, share),
          .backward = between(low.backward, high.backward, share),
          .gathers = between(low.gathers, high.gathers, share),
          .reduction = between(low.reduction, high.reduction, share)};
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

bool StageWish::operator<(const StageWish& other) const {
  return std::tie(place, chunks, layers, in_flight, overlaps_reduction) <
         std::tie(
             other.place, other.chunks, other.layers, other.in_flight, other.overlaps_reduction);
}

PieceSet::PieceSet(std::vector<ExecutedPiece> pieces) : pieces_(std::move(pieces)) {
  std::map<StagePlace, OfSizes> next;  // the same stages with fewer in flight
  for (const ExecutedPiece& piece : pieces_) {
    OfSizes& samples = samples_[piece.run.place];
    const Sample sample = sample_of(piece);
    if (piece.run.place == StagePlace::kOnly) {
      samples[kSmall] = samples[kLarge] = sample;
    } else {
      Sample& slot = samples[size_of(piece.run)];
      (slot.phases.empty() ? slot : next[piece.run.place][size_of(piece.run)]) = sample;
    }
  }
  growth_.resize(sample_of(pieces_.front()).phases.size());
  const auto middle = samples_.find(StagePlace::kMiddle);
  if (middle == samples_.end()) return;
  measure_growth(middle->second, next[StagePlace::kMiddle]);
  const Sample& other_first = next[StagePlace::kFirst][kSmall];
  if (other_first.phases.empty()) return;
  measure_first(samples_[StagePlace::kFirst][kSmall], other_first);
}

void PieceSet::measure_first(const Sample& first, const Sample& next) {
  for (std::size_t p = 0; p < growth_.size(); ++p) {
    const double in_flight =
        (first.phases[p].peak - next.phases[p].peak) / (first.in_flight - next.in_flight);
    growth_[p].first_in_flight = std::max(0.0, in_flight - growth_[p].slope(first.layers));
  }
}

PieceSet::Sample PieceSet::sample_of(const ExecutedPiece& piece) {
  Sample sample{.layers = static_cast<double>(piece.run.layers),
                .in_flight = static_cast<double>(piece.run.in_flight)};
  for (const PhaseRecord& phase : piece.profile.phases) {
    const auto allocated = static_cast<double>(phase.peak.allocated_bytes);
    sample.phases.push_back(
        {.peak = allocated,
         .after = static_cast<double>(phase.after.allocated_bytes),
         .shared = shared_state(piece.run.plan, *piece.profile.model_state, phase.name),
         .lost = static_cast<double>(phase.peak.reserved_bytes) - allocated});
  }
  return sample;
}

double PieceSet::Growth::slope(double layers) const {
  return at_layers(in_flight[kSmall], in_flight[kLarge], layers);
}

/// `next` are the stages after those of `middle`, with fewer forwards in flight.
void PieceSet::measure_growth(const OfSizes& middle, const OfSizes& next) {
  for (std::size_t p = 0; p < growth_.size(); ++p) {
    Growth& growth = growth_[p];
    for (const std::size_t size : {kSmall, kLarge}) {
      growth.in_flight[size] = (middle[size].phases[p].peak - next[size].phases[p].peak) /
                               (middle[size].in_flight - next[size].in_flight);
    }
    const auto& [small, large] = middle;
    const double more_layers = large.layers * (large.in_flight - next[kLarge].in_flight);
    growth.lost_in_flight =
        std::clamp((large.phases[p].lost - next[kLarge].phases[p].lost) / more_layers,
                   0.0,
                   kMostLost * growth.in_flight[kLarge] / large.layers);
    const double lost =
        (large.phases[p].lost - small.phases[p].lost) / (large.layers - small.layers);
    const double of_layer =
        (large.phases[p].peak - small.phases[p].peak) / (large.layers - small.layers);
    growth.lost_beyond = std::clamp(
        lost - growth.lost_in_flight * large.in_flight, 0.0, std::max(0.0, kMostLost * of_layer));
  }
}

const ExecutedPiece& PieceSet::piece(StagePlace place, std::size_t size) const {
  for (const ExecutedPiece& piece : pieces_) {
    const bool is_size = place == StagePlace::kOnly || size_of(piece.run) == size;
    if (piece.run.place == place && is_size) return piece;
  }
  throw std::logic_error("a piece was not executed");
}

double PieceSet::lost_bytes(const OfSizes& samples,
                            std::size_t phase,
                            double layers,
                            double layers_in_flight) const {
  const Growth& growth = growth_[phase];
  const auto beside_flight = [&](const Sample& sample) {
    return sample.phases[phase].lost - growth.lost_in_flight * sample.layers * sample.in_flight;
  };
  const auto& [small, large] = samples;
  const double beyond = std::max(0.0, layers - large.layers);
  return std::max(0.0,
                  line_at(beside_flight(small), beside_flight(large), layers - beyond) +
                      growth.lost_beyond * beyond + growth.lost_in_flight * layers_in_flight);
}

StageMemory PieceSet::memory(const Plan& plan, const StageWish& wish) const {
  const OfSizes& samples = samples_.at(wish.place);
  const auto& [small, large] = samples;
  const auto layers =
      static_cast<double>(std::accumulate(wish.layers.begin(), wish.layers.end(), int64_t{0}));
  const double of_chunk = layers / static_cast<double>(wish.layers.size());
  const auto in_flight = static_cast<double>(wish.in_flight);
  const double share = static_cast<double>(pieces_.front().run.plan.replicas()) /
                       static_cast<double>(plan.replicas());
  // Only the first of a stage's chunks has the embedding.
  const double of_first =
      wish.place == StagePlace::kFirst
          ? in_flight / static_cast<double>(wish.layers.size()) - small.in_flight
          : 0;
  StageMemory memory;
  for (std::size_t p = 0; p < growth_.size(); ++p) {
    const PhaseSample &few = small.phases[p], &many = large.phases[p];
    const bool builds = pieces_.front().profile.phases[p].name == kBuildPhase;
    const double beside =
        builds ? line_at(few.after, many.after, layers) - line_at(few.after, many.after, of_chunk)
               : 0;
    const double bytes = beside + line_at(few.peak, many.peak, builds ? of_chunk : layers) +
                         line_at(few.shared, many.shared, layers) * (share - 1) +
                         growth_[p].slope(of_chunk) * in_flight -
                         growth_[p].slope(layers) * small.in_flight +
                         of_first * growth_[p].first_in_flight;
    const double lost = lost_bytes(samples, p, of_chunk, of_chunk * in_flight);
    memory.allocated_bytes = std::max<int64_t>(memory.allocated_bytes, std::llround(bytes));
    memory.reserved_bytes = std::max<int64_t>(memory.reserved_bytes, std::llround(bytes + lost));
  }
  const double off = has_uneven_chunks(wish) ? kMostOffOfUneven : 0;
  memory.least_allocated_bytes =
      std::llround((1 - off) * static_cast<double>(memory.allocated_bytes));
  return memory;
}

StageTime PricedPieces::time(const StageWish& wish) const {
  StageTime stage;
  int64_t layers = 0;
  for (std::size_t c = 0; c < wish.chunks.size(); ++c) {
    const auto& [low, high] = times.at(wish.chunks[c]);
    const double of_chunk = share_of(static_cast<double>(wish.layers[c]));
    stage.chunks.push_back(between(low.chunks.front(), high.chunks.front(), of_chunk));
    if (c > 0 && wish.overlaps_reduction) begin_in_backward(stage.chunks.back().reduction);
    layers += wish.layers[c];
  }
  const auto& [low, high] = times.at(wish.place);
  const double of_stage = share_of(static_cast<double>(layers));
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

std::vector<StageWish> stage_wishes(const Plan& plan) {
  const ScheduleShape shape = schedule_shape(plan);
  const int64_t dense = plan.model.dense_layers_first().value_or(0);
  std::vector<StageWish> wishes;
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    StageWish wish{.place = place_of(stage, shape.stages),
                   .layers = plan.layers_of_chunks(stage),
                   .in_flight = forwards_in_flight(shape, stage),
                   .overlaps_reduction = plan.parallelism.overlap_grad_reduce};
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      wish.chunks.push_back(place_of(virtual_stage(shape, stage, chunk), shape.virtual_stages()));
    }
    if (shape.stages > 1 && stage == 0) wish.layers.front() -= dense;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

}  // namespace estimator
