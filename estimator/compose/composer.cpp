#include "estimator/compose/composer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "estimator/cluster/memory_verdict.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/compute/compute_time.h"
#include "estimator/step/step_time.h"

namespace estimator {
namespace {

std::vector<ExecutedPiece> with_profiles(std::vector<PieceRun> runs,
                                         std::vector<RankProfile> profiles) {
  std::vector<ExecutedPiece> pieces;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    pieces.push_back({std::move(runs[i]), std::move(profiles[i])});
  }
  return pieces;
}

/// The places that stages and chunks of the plan have, and a stage for each.
std::map<StagePlace, int64_t> places_of(const Plan& plan) {
  const int64_t stages = plan.parallelism.pipeline;
  if (stages == 1) return {{StagePlace::kOnly, 0}};
  std::map<StagePlace, int64_t> places = {{StagePlace::kFirst, 0}, {StagePlace::kLast, stages - 1}};
  if (stages * plan.parallelism.virtual_stages > 2) places[StagePlace::kMiddle] = 1;
  return places;
}

/// As keep_power_limit() plays it: each stage has boards of its own.
class ComposedStep {
 public:
  /// The times of a stage at the rates or at kSlowSpeed, which must outlive this.
  using StageAtSpeed = std::function<const StageTime&(std::size_t stage, bool is_slow)>;

  ComposedStep(const Plan& plan, const Fabric& fabric, double long_wait, StageAtSpeed stage_at)
      : plan_(plan),
        fabric_(fabric),
        layout_(plan.parallelism),
        long_wait_(long_wait),
        stage_at_(std::move(stage_at)) {
    const auto stages = static_cast<std::size_t>(plan.parallelism.pipeline);
    stages_.reserve(stages);
    for (std::size_t stage = 0; stage < stages; ++stage) stages_.push_back(stage_at_(stage, false));
    play();
  }

  StepEnergy energy_of(std::size_t stage) const {
    return stages_[stage].energy.of_step(plan_.micro_batches(),
                                         played_.seconds_without_long_waits(stage));
  }
  void slow_down(std::size_t stage, double speed) {
    stages_[stage] = at_speed(stage_at_(stage, false), stage_at_(stage, true), speed);
  }
  void play() { played_ = play_step(plan_, layout_, fabric_, stages_, long_wait_); }

  const StepTime& time() const { return played_.time; }

 private:
  const Plan& plan_;
  const Fabric& fabric_;
  ParallelLayout layout_;
  double long_wait_;
  StageAtSpeed stage_at_;
  std::vector<StageTime> stages_;
  PlayedStep played_;
};

}  // namespace

std::string pieces_of(const Plan& plan) {
  return (plan.parallelism.pipeline == 1 ? "one stage: " : "stages: ") + family_of(plan);
}

Composer::Composer(std::vector<PieceRun> runs,
                   std::vector<RankProfile> profiles,
                   const Calibration* calibration)
    : pieces_(with_profiles(std::move(runs), std::move(profiles))), calibration_(calibration) {}

PricedPieces Composer::price_pieces(const Plan& plan, const Fabric& fabric, double speed) {
  PricedPieces priced;
  const ParallelLayout layout(plan.parallelism);
  ComputeTarget compute = compute_target(plan, gpu_of(plan.cluster), calibration_);
  compute.speed = speed;
  const StageTarget target{.plan = plan, .compute = compute, .layout = layout, .fabric = fabric};
  for (const auto& [place, stage] : places_of(plan)) {
    for (std::size_t size = 0; size < kPieceLayers.size(); ++size) {
      const ExecutedPiece& piece = pieces_.piece(place, size);
      auto& [pricer, records] =
          priced_pieces_.try_emplace(&piece, PricedPiece{StagePricer(piece.profile)}).first->second;
      make_stage_of(plan, stage, piece.run, piece.profile, records);
      priced.times[place][size] = pricer.time(records, target);
    }
  }
  return priced;
}

/// Of a profile, what tells the memory outside of the allocator.
RankProfile with_calls_of(const StageRecords& records, const RankProfile& profile) {
  RankProfile calls{.plan = profile.plan, .rank = records.rank};
  for (const CollectiveRecord& record : records.collectives) {
    calls.collectives.push_back({.call = record.call});
  }
  return calls;
}

Composer::Priced Composer::price(const Plan& plan) const {
  Priced priced{.fabric = fabric_of(plan)};
  const ParallelLayout layout(plan.parallelism);
  priced.power = compute_target(plan, gpu_of(plan.cluster), calibration_).rates().power();
  for (const auto& [place, stage] : places_of(plan)) {
    const ExecutedPiece& piece = pieces_.piece(place, kPieceLayers.size() - 1);
    StageRecords records;
    make_stage_of(plan, stage, piece.run, piece.profile, records);
    const RankClass one{.representative_rank = records.rank, .count = 1, .stages = {stage}};
    priced.outside[place] =
        class_memory(plan, one, with_calls_of(records, piece.profile), layout, priced.fabric);
  }
  return priced;
}

Composer::Priced& Composer::priced_for(const Plan& plan) {
  const PricedKey key{.data_ranks = plan.data_parallel_size(),
                      .stages = plan.parallelism.pipeline,
                      .is_interleaved = plan.parallelism.virtual_stages > 1};
  const auto found = priced_.find(key);
  return found != priced_.end() ? found->second : priced_.emplace(key, price(plan)).first->second;
}

const StageMemory& Composer::stage_memory(const Plan& plan,
                                          const StageWish& wish,
                                          Priced& priced) const {
  const auto [found, is_new] = priced.memories.try_emplace(wish);
  if (is_new) found->second = pieces_.memory(plan, wish);
  return found->second;
}

const StageTime& Composer::time_of_stage(const Plan& plan,
                                         const StageWish& wish,
                                         const Fabric& fabric,
                                         AtSpeed& at) {
  if (!at.pieces) at.pieces = price_pieces(plan, fabric, at.speed);
  const auto [found, is_new] = at.times.try_emplace(wish);
  if (is_new) found->second = at.pieces->time(wish);
  return found->second;
}

ComposedPlan Composer::compose(const Plan& plan) {
  Priced& priced = priced_for(plan);
  const std::vector<StageWish> wishes = stage_wishes(plan);
  const int64_t capacity = gpu_of(plan.cluster).memory_bytes;
  const int64_t limit = capacity - plan.memory.headroom_bytes;
  ComposedPlan composed;
  composed.outcome = Fit::kFits;
  composed.may_fit = true;
  for (std::size_t s = 0; s < wishes.size(); ++s) {
    const StageMemory& memory = stage_memory(plan, wishes[s], priced);
    const RankClassEstimate& outside = priced.outside.at(wishes[s].place);
    composed.outcome = std::max(composed.outcome,
                                fit_of(memory.reserved_bytes + outside.total_low_bytes,
                                       memory.reserved_bytes + outside.total_high_bytes,
                                       limit));
    composed.may_fit =
        composed.may_fit && memory.least_allocated_bytes + outside.total_low_bytes <= limit;
    composed.allocated_bytes = std::max(composed.allocated_bytes, memory.allocated_bytes);
    const int64_t total = memory.reserved_bytes + outside.total_bytes;
    if (total <= composed.peak_bytes) continue;
    composed.peak_bytes = total;
    composed.worst_stage = static_cast<int64_t>(s);
  }
  composed.headroom_bytes = capacity - composed.peak_bytes;
  return composed;
}

StepTime Composer::time(const Plan& plan) {
  Priced& priced = priced_for(plan);
  const std::vector<StageWish> wishes = stage_wishes(plan);
  const auto stage_at = [&](std::size_t stage, bool is_slow) -> const StageTime& {
    return time_of_stage(plan, wishes[stage], priced.fabric, is_slow ? priced.slow : priced.usual);
  };
  ComposedStep step(plan, priced.fabric, long_wait_of(priced.power), stage_at);
  if (priced.power != nullptr) keep_power_limit(*priced.power, wishes.size(), step);
  return step.time();
}

}  // namespace estimator
