#include "estimator/cluster/program_replay.h"

#include <algorithm>
#include <string>

#include "estimator/cluster/program_ranks.h"
#include "estimator/compute/gpu_variation.h"

namespace estimator {
namespace {

/// All ranks of GPUs that wait for each other are as slow as the slowest of them.
GpuRates rates_at(const ProgramPlace& place, int64_t world_size) {
  const double deviation = place.gpu_deviation.value_or(usual_gpu_deviation().value);
  return GpuRates(place.gpu,
                  place.calibration,
                  {},
                  slowest_gpu_slowdown(world_size, deviation),
                  Priced::kKernels);
}

std::size_t event_of(const PlayedWork& played) { return static_cast<std::size_t>(played.event); }

std::size_t item_of(const ReplayRank& rank, const PlayedWork& played) {
  return static_cast<std::size_t>(rank.profile->trace->events.item[event_of(played)]);
}

}  // namespace

ProgramReplay::ProgramReplay(const std::vector<RankProfile>& profiles, const ProgramPlace& place)
    : rates(rates_at(place, profiles.front().world_size)), fabric(place.fabric) {
  std::string why;
  for (const RankProfile* profile : ranks_to_replay(profiles, why)) {
    ranks.push_back({profile, work_prices(*profile, rates, fabric)});
  }
  played = replay(ranks, rates.launch());
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
