#include "estimator/compose/composed_stage.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "estimator/base/dtype.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/layer_parameters.h"
#include "estimator/schedule/active_chunks.h"
#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {
namespace {

constexpr std::size_t kSmall = 0, kLarge = 1;

constexpr const char* kBuildPhase = "build_model";
constexpr const char* kForwardBackward = ".forward_backward";

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

/// Parameters of a layer like the last one, on a rank that has gathered them.
double gathered_parameters(const Plan& plan) {
  const LayerParameters layer = layer_parameters(plan.model, plan.model.num_layers - 1);
  const auto share = [](int64_t parameters, int64_t ranks) {
    return static_cast<double>(parameters) / static_cast<double>(ranks);
  };
  return share(layer.beside_experts, plan.parallelism.tensor) +
         share(layer.of_experts, ranks_of_experts(plan));
}

/// Layers beside those of the chunks that FSDP2 gathers at once. Of the smallest chunks, as the
/// peak is that of the largest ones.
int64_t layers_not_gathered(std::vector<int64_t> of_chunks) {
  if (std::ssize(of_chunks) <= kMostActiveChunks) return 0;
  std::sort(of_chunks.begin(), of_chunks.end(), std::greater<>());
  return std::accumulate(of_chunks.begin() + kMostActiveChunks, of_chunks.end(), int64_t{0});
}

/// Of the allocated bytes, where chunks differ, or are those of torch (see StageMemory).
constexpr double kMostOffOfUneven = 0.02, kMostOffOfTorchs = 0.10;

bool has_uneven_chunks(const StageWish& wish) {
  return std::adjacent_find(wish.layers.begin(), wish.layers.end(), std::not_equal_to<>()) !=
         wish.layers.end();
}

double most_off(const StageWish& wish) {
  if (wish.buffered > 0 && wish.chunks.size() > 1) return kMostOffOfTorchs;
  return has_uneven_chunks(wish) ? kMostOffOfUneven : 0;
}

/// Of the bytes of activations in flight, and of one more layer: more is noise of the pieces.
constexpr double kMostLost = 0.06;

/// Two peaks of pieces are taken to be the same, but for the allocator's blocks.
constexpr double kSamePeak = 0.001;

std::size_t size_of(const PieceRun& run) {
  return run.layers == kPieceLayers[kSmall] ? kSmall : kLarge;
}

double line_at(double low, double high, double layers) {
  return low + (high - low) * share_of_way(layers);
}

/// `low` at the smaller and `high` at the larger number of layers.
double at_layers(double low, double high, double layers) {
  return std::max(0.0, line_at(low, high, layers));
}

}  // namespace

double StageWish::all_layers() const {
  return static_cast<double>(std::accumulate(layers.begin(), layers.end(), int64_t{0}));
}

double StageWish::layers_of_chunk() const {
  return all_layers() / static_cast<double>(layers.size());
}

bool StageWish::operator<(const StageWish& other) const {
  const auto all = [](const StageWish& wish) {
    return std::tie(wish.place,
                    wish.chunks,
                    wish.layers,
                    wish.in_flight,
                    wish.stage,
                    wish.micro_batches,
                    wish.overlaps_reduction,
                    wish.buffered);
  };
  return all(*this) < all(other);
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

/// The bytes of a message from a stage to the next, which are those of a chunk's input.
double PieceSet::input_bytes() const {
  for (const CollectiveRecord& record : piece(StagePlace::kMiddle, kSmall).profile.collectives) {
    const bool is_sent = record.call.kind == CollectiveKind::kSend &&
                         record.call.group == GroupKind::kPipeline &&
                         record.direction == Direction::kForward;
    if (is_sent) return static_cast<double>(record.call.bytes);
  }
  return 0;
}

std::vector<double> PieceSet::forward_bytes(const StageWish& wish, const Growth& growth) const {
  std::vector<double> bytes;
  for (const int64_t layers : wish.layers) {
    bytes.push_back(growth.slope(static_cast<double>(layers)));
  }
  if (wish.place == StagePlace::kFirst) bytes.front() += growth.first_in_flight;
  return bytes;
}

/// Beside activations, the last input of a chunk with its gradient, and the last output. The input
/// of the model's first chunk are tokens.
HeldBytes PieceSet::held_bytes(const Plan& plan,
                               const StageWish& wish,
                               const Growth& growth) const {
  HeldBytes bytes{.of_forward = forward_bytes(wish, growth),
                  .of_ended = std::vector<double>(wish.layers.size())};
  if (!traits_of(plan.training.framework).schedule_variables) return bytes;
  bytes.of_pair = input_bytes();
  const auto first = bytes.of_ended.begin() + (wish.place == StagePlace::kFirst ? 1 : 0);
  std::fill(first, bytes.of_ended.end(), 2 * bytes.of_pair);
  return bytes;
}

double PieceSet::most_in_flight(const Plan& plan,
                                const StageWish& wish,
                                std::size_t phase,
                                std::optional<int64_t> of_chunk) const {
  const Growth& growth = growth_[phase];
  if (wish.layers.size() == 1) {
    return static_cast<double>(wish.in_flight) * forward_bytes(wish, growth).front();
  }
  if (!has_forwards(phase)) return 0;
  return most_held_bytes(schedule_shape(plan),
                         wish.stage,
                         wish.micro_batches,
                         held_bytes(plan, wish, growth),
                         of_chunk);
}

bool PieceSet::builds(std::size_t phase) const {
  return pieces_.front().profile.phases[phase].name == kBuildPhase;
}

/// What a layer of the first stage adds to its peak with as many forwards in flight as the piece,
/// and to each of these: layers are those of the middle.
PieceSet::LayerBytes PieceSet::layer_bytes_of_first(std::size_t phase) const {
  const Sample& first = samples_.at(StagePlace::kFirst)[kSmall];
  const auto& [small, large] = samples_.at(StagePlace::kMiddle);
  const double more_layers = large.layers - small.layers;
  const auto& in_flight = growth_[phase].in_flight;
  LayerBytes bytes{.of_forward = (in_flight[kLarge] - in_flight[kSmall]) / more_layers};
  bytes.all = (large.phases[phase].peak - small.phases[phase].peak) / more_layers +
              bytes.of_forward * (first.in_flight - small.in_flight);
  return bytes;
}

/// The peak of the first stage is in the backward of its layers, or in that of its embedding, when
/// the chunk's layers have freed what they held of this forward. It is the embedding's in the small
/// piece if that one needs more than its layers do.
double PieceSet::peak_of_first(const Plan& plan, const StageWish& wish, std::size_t phase) const {
  const auto& [small, large] = samples_.at(StagePlace::kFirst);
  const LayerBytes of_layer = layer_bytes_of_first(phase);
  const auto at = [&](const Sample& sample) {
    return sample.phases[phase].peak + of_layer.all * (wish.all_layers() - sample.layers);
  };
  const double of_layers = at(large) + most_in_flight(plan, wish, phase);
  if (at(small) < (1 + kSamePeak) * at(large)) return of_layers;
  const double freed =
      of_layer.of_forward * (static_cast<double>(wish.layers.front()) - small.layers);
  return std::max(of_layers, at(small) - freed + most_in_flight(plan, wish, phase, 0));
}

/// With the forwards in flight of the piece and of the stage. The last stage's peak is that of the
/// loss, in the backward of its last chunk.
double PieceSet::peak_in_flight(const Plan& plan, const StageWish& wish, std::size_t phase) const {
  if (wish.place == StagePlace::kFirst) return peak_of_first(plan, wish, phase);
  const auto& [small, large] = samples_.at(wish.place);
  const bool is_last = wish.place == StagePlace::kLast;
  return line_at(small.phases[phase].peak, large.phases[phase].peak, wish.all_layers()) +
         most_in_flight(plan,
                        wish,
                        phase,
                        is_last ? std::optional(std::ssize(wish.layers) - 1) : std::nullopt);
}

/// Of each micro-batch tokens and labels, and of each chunk its input and the gradient of its
/// output, which the model's first and last chunk do not receive.
double PieceSet::buffer_bytes(const Plan& plan, const StageWish& wish) const {
  if (wish.buffered == 0) return 0;
  const auto is_end = [](StagePlace place) { return place != StagePlace::kMiddle; };
  const auto received =
      2 * std::ssize(wish.chunks) - std::count_if(wish.chunks.begin(), wish.chunks.end(), is_end);
  constexpr double kTokenAndLabel = 2 * sizeof(int64_t);
  const auto tokens = static_cast<double>(plan.local_sequence() * plan.training.micro_batch_size);
  return static_cast<double>(wish.buffered) *
         (kTokenAndLabel * tokens + static_cast<double>(received) * input_bytes());
}

bool PieceSet::has_forwards(std::size_t phase) const {
  return pieces_.front().profile.phases[phase].name.ends_with(kForwardBackward);
}

/// The one chunk of a piece of torch's pipelines stays gathered under ZeRO stage 2; of several
/// ones few do.
double PieceSet::not_gathered_bytes(const Plan& plan,
                                    const StageWish& wish,
                                    std::size_t phase) const {
  const bool keeps_gathered = plan.torch_pipeline() && plan.parallelism.zero_stage == 2;
  if (!keeps_gathered || !has_forwards(phase)) return 0;
  return static_cast<double>(layers_not_gathered(wish.layers)) * gathered_parameters(plan) *
         static_cast<double>(bytes_per_element(plan.training.dtype));
}

/// While they are built, the weights of one chunk exist twice.
double PieceSet::allocated_bytes(const Plan& plan, const StageWish& wish, std::size_t phase) const {
  const auto& [small, large] = samples_.at(wish.place);
  const PhaseSample &few = small.phases[phase], &many = large.phases[phase];
  const double layers = wish.all_layers(), of_chunk = wish.layers_of_chunk();
  const double share = static_cast<double>(pieces_.front().run.plan.replicas()) /
                       static_cast<double>(plan.replicas());
  const double shared = line_at(few.shared, many.shared, layers) * (share - 1);
  if (builds(phase)) {
    return shared + line_at(few.peak, many.peak, of_chunk) +
           line_at(few.after, many.after, layers) - line_at(few.after, many.after, of_chunk);
  }
  const Growth& growth = growth_[phase];
  const double of_first = wish.place == StagePlace::kFirst ? growth.first_in_flight : 0;
  const StageWish piece = {.place = wish.place,
                           .chunks = {wish.place},
                           .buffered = wish.buffered == 0 ? 0 : kMicroBatchesOfPieces};
  return shared + peak_in_flight(plan, wish, phase) -
         small.in_flight * (growth.slope(layers) + of_first) + buffer_bytes(plan, wish) -
         buffer_bytes(plan, piece) - not_gathered_bytes(plan, wish, phase);
}

double PieceSet::lost_of_stage(const StageWish& wish, std::size_t phase) const {
  const double of_chunk = wish.layers_of_chunk();
  return lost_bytes(
      samples_.at(wish.place), phase, of_chunk, of_chunk * static_cast<double>(wish.in_flight));
}

StageMemory PieceSet::memory(const Plan& plan, const StageWish& wish) const {
  double allocated = 0, reserved = 0;
  for (std::size_t phase = 0; phase < growth_.size(); ++phase) {
    const double of_phase = allocated_bytes(plan, wish, phase);
    allocated = std::max(allocated, of_phase);
    reserved = std::max(reserved, of_phase + lost_of_stage(wish, phase));
  }
  return {.allocated_bytes = std::llround(allocated),
          .least_allocated_bytes = std::llround((1 - most_off(wish)) * std::round(allocated)),
          .reserved_bytes = std::llround(reserved)};
}

std::vector<StageWish> stage_wishes(const Plan& plan) {
  const ScheduleShape shape = schedule_shape(plan);
  const int64_t dense = plan.model.dense_layers_first().value_or(0);
  std::vector<StageWish> wishes;
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    StageWish wish{.place = place_of(stage, shape.stages),
                   .layers = plan.layers_of_chunks(stage),
                   .in_flight = forwards_in_flight(shape, stage),
                   .stage = shape.chunks > 1 ? stage : 0,
                   .micro_batches = shape.chunks > 1 ? micro_batches_to_execute(shape, stage) : 0,
                   .overlaps_reduction = plan.parallelism.overlap_grad_reduce,
                   .buffered = plan.torch_pipeline() ? plan.micro_batches() : 0};
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      wish.chunks.push_back(place_of(virtual_stage(shape, stage, chunk), shape.virtual_stages()));
    }
    if (shape.stages > 1 && stage == 0) wish.layers.front() -= dense;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

}  // namespace estimator
