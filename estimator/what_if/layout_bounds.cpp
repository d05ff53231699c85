#include "estimator/what_if/layout_bounds.h"

#include <algorithm>
#include <cmath>

#include "estimator/communication/fabric.h"
#include "estimator/compute/compute_time.h"
#include "estimator/schedule/pipeline_schedule.h"
#include "estimator/step/stage_time.h"
#include "estimator/what_if/least_bytes.h"

namespace estimator {
namespace {

constexpr int64_t kBytesOfInput = 2;  ///< of an element, at least

bool recomputes_layers(const Plan& plan) { return plan.training.recompute == Recompute::kFull; }

double seconds_of(const PartTime& part) {
  const ExposedCommunication& waits = part.communication_seconds;
  return part.compute_seconds + waits.tensor + waits.context + waits.expert;
}

ChunkTime chunk_time(const PieceRun& run,
                     const RankProfile& profile,
                     const Calibration* calibration) {
  const Fabric fabric = fabric_of(run.plan);
  const ComputeTarget compute = compute_target(run.plan, gpu_of(run.plan.cluster), calibration);
  const ParallelLayout layout(run.plan.parallelism);
  return stage_time(profile,
                    {.plan = run.plan, .compute = compute, .layout = layout, .fabric = fabric})
      .chunks.front();
}

int64_t peak_of(const RankProfile& profile) { return profile.peak.allocated_bytes; }

/// The input of a layer, with the sequence divided among the ranks that share it.
double input_bytes(const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  const int64_t ranks = p.context * (p.sequence_parallel ? p.tensor : 1);
  return static_cast<double>(plan.sequence_length() * plan.model.hidden_size * kBytesOfInput) /
         static_cast<double>(ranks);
}

/// Held of a layer of one sample until its backward.
double held_bytes(const Plan& plan, const LayerCost& cost) {
  if (plan.training.recompute == Recompute::kNone && cost.activation_bytes > 0) {
    return cost.activation_bytes;
  }
  if (plan.parallelism.tensor > 1 && plan.training.distribute_saved_activations) return 0;
  return input_bytes(plan);
}

int64_t stage_bytes(const Plan& plan, const LayerCost& cost, int64_t stage) {
  const auto layers = static_cast<double>(std::max<int64_t>(0, layers_alike(plan, stage)));
  const auto forwards = static_cast<double>(forwards_in_flight(schedule_shape(plan), stage));
  const double layers_in_flight =
      forwards * layers / static_cast<double>(plan.parallelism.virtual_stages);
  const auto samples = static_cast<double>(plan.training.micro_batch_size);
  const double of_most =
      layers / static_cast<double>(std::max<int64_t>(1, most_layers_alike(plan)));
  return std::llround(static_cast<double>(least_bytes(plan)) * of_most +
                      layers_in_flight * samples * held_bytes(plan, cost));
}

}  // namespace

LayerCost layer_cost(const std::vector<PieceRun>& runs,
                     const std::vector<RankProfile>& profiles,
                     const Calibration* calibration) {
  const PieceRun& run = runs.front();
  const ChunkTime chunk = chunk_time(run, profiles.front(), calibration);
  const auto samples = static_cast<double>(run.plan.training.micro_batch_size);
  const double layers = static_cast<double>(run.layers) * samples;
  const double recomputed = recomputes_layers(run.plan) ? seconds_of(chunk.forward) : 0;
  LayerCost cost{
      .forward_seconds = seconds_of(chunk.forward) / layers,
      .backward_seconds = std::max(0.0, seconds_of(chunk.backward) - recomputed) / layers};
  const bool holds_all = run.plan.training.recompute == Recompute::kNone;
  if (runs.size() < 2 || !holds_all || run.in_flight == runs[1].in_flight) return cost;
  const auto forwards = static_cast<double>(run.in_flight - runs[1].in_flight);
  const auto more = static_cast<double>(peak_of(profiles[0]) - peak_of(profiles[1]));
  // What comes from the stage before is held beside the layers.
  cost.activation_bytes = std::max(
      0.0, more / (forwards * layers) - input_bytes(run.plan) / static_cast<double>(run.layers));
  return cost;
}

LayerCost cost_of_pipeline(const std::vector<PieceRun>& runs,
                           const std::vector<RankProfile>& profiles,
                           const Calibration* calibration) {
  const auto middle = std::find_if(runs.begin(), runs.end(), [](const PieceRun& run) {
    return run.place == StagePlace::kMiddle;
  });
  const auto profile = profiles.begin() + std::distance(runs.begin(), middle);
  return layer_cost({middle, middle + 2}, {profile, profile + 2}, calibration);
}

LayerCost cost_for(const Plan& plan, const LayerCosts& costs) {
  const auto found = costs.lower_bound(plan.training.micro_batch_size);
  return found == costs.end() ? LayerCost{} : found->second;
}

double least_step_seconds(const Plan& plan, const LayerCost& cost) {
  const ScheduleShape shape = schedule_shape(plan);
  const int64_t layers = plan.model.num_layers - plan.model.dense_layers_first().value_or(0);
  const double of_layer =
      cost.forward_seconds * (recomputes_layers(plan) ? 2 : 1) + cost.backward_seconds;
  const double of_stage = of_layer * static_cast<double>(plan.training.micro_batch_size) *
                          static_cast<double>(layers) / static_cast<double>(shape.stages);
  const double bubble = static_cast<double>(shape.stages - 1) / static_cast<double>(shape.chunks);
  return (static_cast<double>(shape.micro_batches) + bubble) * of_stage;
}

int64_t least_peak_bytes(const Plan& plan, const LayerCost& cost) {
  const int64_t first = stage_bytes(plan, cost, 0);
  return plan.parallelism.pipeline > 1 ? std::max(first, stage_bytes(plan, cost, 1)) : first;
}

}  // namespace estimator
