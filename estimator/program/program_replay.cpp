#include "estimator/program/program_replay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "estimator/compute/gpu_variation.h"
#include "estimator/program/program_ranks.h"
#include "estimator/program/program_tokens.h"

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

/// Seconds in waits of `at_least` so long, in which nothing runs that needs energy. A collective
/// runs from when all of its members have come.
double long_waits(const ReplayRank& rank, const PlayedRank& played, double at_least) {
  std::vector<std::pair<double, double>> busy = {{played.iteration_end, played.iteration_end}};
  for (const PlayedWork& work : played.works) {
    if (price_of(rank, work).joules > 0) busy.emplace_back(work.start, work.end);
  }
  std::sort(busy.begin(), busy.end());
  double sum = 0, until = played.iteration_start;
  for (const auto& [start, end] : busy) {
    if (start - until >= at_least) sum += start - until;
    until = std::max(until, end);
  }
  return sum;
}

StepEnergy step_energy(const ReplayRank& rank, const PlayedRank& played, double long_wait) {
  StepEnergy step{.seconds = played.iteration_seconds() - long_waits(rank, played, long_wait)};
  for (const PlayedWork& work : played.works) {
    const WorkPrice& price = price_of(rank, work);
    step.joules += price.joules;
    if (is_bound_by_arithmetic(price)) step.arithmetic_seconds += price.seconds;
  }
  step.arithmetic_seconds = std::min(step.arithmetic_seconds, step.seconds);
  return step;
}

/// As keep_power_limit() plays it.
class LimitedReplay {
 public:
  LimitedReplay(ProgramReplay& replay, const ProgramPlace& place)
      : replay_(replay), place_(place) {}

  StepEnergy energy_of(std::size_t rank) const {
    return step_energy(
        replay_.ranks[rank], replay_.played[rank], long_wait_of(replay_.rates.power()));
  }

  /// The energies stay those of full speed.
  void slow_down(std::size_t rank, double speed) {
    ReplayRank& slowed = replay_.ranks[rank];
    const GpuRates rates = rates_at(place_, ranks_together(*slowed.profile), speed);
    std::vector<WorkPrice> prices = work_prices(*slowed.profile, rates, replay_.fabric);
    for (std::size_t i = 0; i < prices.size(); ++i) prices[i].joules = slowed.prices[i].joules;
    slowed.prices = std::move(prices);
  }

  void play() { replay_.played = replay(replay_.ranks, replay_.rates.launch()); }

 private:
  ProgramReplay& replay_;
  const ProgramPlace& place_;
};

}  // namespace

ProgramReplay::ProgramReplay(const std::vector<RankProfile>& profiles, const ProgramPlace& place)
    : rates(rates_at(place, ranks_together(profiles.front()))), fabric(place.fabric) {
  std::string why;
  for (const RankProfile* profile : ranks_to_replay(profiles, why)) {
    ranks.push_back({.profile = profile,
                     .prices = work_prices(*profile, rates, fabric),
                     .cpu_optimizer = cpu_optimizer_rate(ranks_of_machine(*profile))});
  }
  LimitedReplay limited(*this, place);
  limited.play();
  boards.resize(ranks.size());
  if (rates.power() != nullptr) boards = keep_power_limit(*rates.power(), ranks.size(), limited);
}

double ProgramReplay::iteration_seconds() const {
  double seconds = 0;
  for (const PlayedRank& rank : played) seconds = std::max(seconds, rank.iteration_seconds());
  return seconds;
}

ReplaySpan ProgramReplay::span() const {
  ReplaySpan span{played.front().iteration_start, played.front().iteration_end};
  for (const PlayedRank& rank : played) {
    span.begin = std::min(span.begin, rank.iteration_start);
    span.end = std::max(span.end, rank.iteration_end);
  }
  return span;
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
