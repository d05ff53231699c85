#include "estimator/cluster/program_replay.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "estimator/cluster/program_ranks.h"
#include "estimator/cluster/program_tokens.h"
#include "estimator/compute/gpu_variation.h"

namespace estimator {
namespace {

/// All ranks of GPUs that wait for each other are as slow as the slowest of them.
GpuRates rates_at(const ProgramPlace& place, int64_t ranks, double speed = 1) {
  const double deviation = place.gpu_deviation.value_or(usual_gpu_deviation().value);
  return GpuRates(place.gpu,
                  place.calibration,
                  {},
                  slowest_gpu_slowdown(ranks, deviation) / speed,
                  Priced::kKernels);
}

/// They share its CPUs.
int64_t ranks_of_machine(const RankProfile& profile) {
  return std::min(profile.world_size, profile.program->gpus_per_node);
}

std::size_t event_of(const PlayedWork& played) { return static_cast<std::size_t>(played.event); }

std::size_t item_of(const ReplayRank& rank, const PlayedWork& played) {
  return static_cast<std::size_t>(rank.profile->trace->events.item[event_of(played)]);
}

/// The energies stay those of full speed.
void slow_down(ReplayRank& rank, const GpuRates& rates, const Fabric& fabric) {
  std::vector<WorkPrice> prices = work_prices(*rank.profile, rates, fabric);
  for (std::size_t i = 0; i < prices.size(); ++i) prices[i].joules = rank.prices[i].joules;
  rank.prices = std::move(prices);
}

StepEnergy energy_of(const ReplayRank& rank, const PlayedRank& played) {
  StepEnergy step{.seconds = played.iteration_seconds()};
  for (const PlayedWork& work : played.works) {
    const WorkPrice& price = price_of(rank, work);
    step.joules += price.joules;
    if (is_bound_by_arithmetic(price)) step.arithmetic_seconds += price.seconds;
  }
  step.arithmetic_seconds = std::min(step.arithmetic_seconds, step.seconds);
  return step;
}

}  // namespace

ProgramReplay::ProgramReplay(const std::vector<RankProfile>& profiles, const ProgramPlace& place)
    : rates(rates_at(place, ranks_together(profiles.front()))), fabric(place.fabric) {
  std::string why;
  for (const RankProfile* profile : ranks_to_replay(profiles, why)) {
    ranks.push_back({.profile = profile,
                     .prices = work_prices(*profile, rates, fabric),
                     .cpu_optimizer = cpu_optimizer_rate(ranks_of_machine(*profile))});
  }
  play();
  boards.resize(ranks.size());
  if (rates.power() != nullptr) keep_power_limit(place, *rates.power());
}

void ProgramReplay::play() { played = replay(ranks, rates.launch()); }

void ProgramReplay::keep_power_limit(const ProgramPlace& place, const BoardPower& board) {
  constexpr int kRounds = 5;
  constexpr double kExact = 0.002;
  for (int round = 0; round < kRounds; ++round) {
    bool is_kept = true;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      BoardUse& use = boards[i];
      const StepEnergy step = energy_of(ranks[i], played[i]);
      if (step.seconds <= 0) continue;
      use.limit_watts = board.limit_watts;
      use.watts = board.watts(step.joules, step.seconds, use.speed);
      const double speed = speed_within_limit(board, step, use.speed);
      if (std::abs(speed - use.speed) < kExact) continue;
      is_kept = false;
      use.speed = speed;
      slow_down(ranks[i], rates_at(place, ranks_together(*ranks[i].profile), speed), fabric);
    }
    if (is_kept) return;
    play();
  }
}

double ProgramReplay::iteration_seconds() const {
  double seconds = 0;
  for (const PlayedRank& rank : played) seconds = std::max(seconds, rank.iteration_seconds());
  return seconds;
}

std::string short_name(const TraceWork& work) {
  if (!work.operator_name.empty()) return work.operator_name;
  return work.name.substr(0, work.name.find('<'));
}

const TraceWork& work_of(const ReplayRank& rank, const PlayedWork& played) {
  return rank.profile->trace->works[item_of(rank, played)];
}

const WorkPrice& price_of(const ReplayRank& rank, const PlayedWork& played) {
  return rank.prices[item_of(rank, played)];
}

Direction direction_of(const ReplayRank& rank, const PlayedWork& played) {
  return static_cast<Direction>(rank.profile->trace->events.direction[event_of(played)]);
}

const std::string& module_of(const ReplayRank& rank, const PlayedWork& played) {
  const Trace& trace = *rank.profile->trace;
  return trace.modules[static_cast<std::size_t>(trace.events.module[event_of(played)])];
}

int64_t stream_of(const ReplayRank& rank, const PlayedWork& played) {
  return rank.profile->trace->events.stream[event_of(played)];
}

}  // namespace estimator
