#include "estimator/step/limited_stages.h"

#include <cstddef>

#include "estimator/step/step_time.h"

namespace estimator {
namespace {

/// As keep_power_limit() plays it.
class PlayedPlan {
 public:
  PlayedPlan(const std::vector<StageGroup>& groups, const StageTarget& target)
      : groups_(groups),
        target_(target),
        speeds_(groups.size(), 1),
        long_wait_(long_wait_of(target.compute.rates().power())),
        stages_(static_cast<std::size_t>(target.plan.parallelism.pipeline)) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      price(i);
      energies_.push_back(stage_of(i).energy);
    }
    play();
  }

  StepEnergy energy_of(std::size_t group) const {
    StageEnergy energy = stage_of(group).energy;
    energy.joules_per_micro_batch = energies_[group].joules_per_micro_batch;
    energy.joules_per_step = energies_[group].joules_per_step;
    return energy.of_step(target_.plan.micro_batches(),
                          played_.seconds_without_long_waits(first_of(group)));
  }

  void slow_down(std::size_t group, double speed) {
    speeds_[group] = speed;
    price(group);
  }

  void play() {
    played_ = play_step(target_.plan, target_.layout, target_.fabric, stages_, long_wait_);
  }

  LimitedStages result(std::vector<BoardUse> boards) {
    return {.stages = std::move(stages_), .step = played_.time, .boards = std::move(boards)};
  }

 private:
  const StageTime& stage_of(std::size_t group) const { return stages_[first_of(group)]; }
  std::size_t first_of(std::size_t group) const {
    return static_cast<std::size_t>(groups_[group].stages.front());
  }

  void price(std::size_t group) {
    ComputeTarget compute = target_.compute;
    compute.speed = speeds_[group];
    const StageTime time = stage_time(*groups_[group].profile,
                                      {.plan = target_.plan,
                                       .compute = compute,
                                       .layout = target_.layout,
                                       .fabric = target_.fabric,
                                       .keep_works = target_.keep_works});
    for (const int64_t stage : groups_[group].stages) {
      stages_[static_cast<std::size_t>(stage)] = time;
    }
  }

  const std::vector<StageGroup>& groups_;
  const StageTarget& target_;
  std::vector<double> speeds_;
  double long_wait_;
  std::vector<StageTime> stages_;
  std::vector<StageEnergy> energies_;  ///< of each group, at the rates
  PlayedStep played_;
};

}  // namespace

LimitedStages limited_stages(const std::vector<StageGroup>& groups, const StageTarget& target) {
  PlayedPlan played(groups, target);
  const GpuRates rates = target.compute.rates();
  std::vector<BoardUse> boards(groups.size());
  if (rates.power() != nullptr) boards = keep_power_limit(*rates.power(), groups.size(), played);
  return played.result(std::move(boards));
}

}  // namespace estimator
