#include "estimator/cluster/program_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "estimator/base/fields.h"
#include "estimator/base/trace_event_file.h"
#include "estimator/cluster/program_ranks.h"
#include "estimator/compute/gpu_variation.h"
#include "estimator/replay/trace_replay.h"

namespace estimator {
namespace {

/// Seconds in which at least one of some spans runs, within a window.
class Cover {
 public:
  Cover(double from, double until) : from_(from), until_(until) {}

  void add(double start, double end) {
    start = std::max(start, from_);
    end = std::min(end, until_);
    if (start < end) spans_.push_back({start, end});
  }
  double seconds() {
    std::sort(spans_.begin(), spans_.end());
    double covered = 0;
    double last = from_;
    for (const auto& [start, end] : spans_) {
      covered += std::max(0.0, end - std::max(start, last));
      last = std::max(last, end);
    }
    return covered;
  }

 private:
  const double from_;
  const double until_;
  std::vector<std::pair<double, double>> spans_;
};

const TraceWork& work_of(const Trace& trace, const PlayedWork& played) {
  const auto item = trace.events.item[static_cast<std::size_t>(played.event)];
  return trace.works[static_cast<std::size_t>(item)];
}

const WorkPrice& price_of(const ReplayRank& rank, const PlayedWork& played) {
  const auto item = rank.profile->trace->events.item[static_cast<std::size_t>(played.event)];
  return rank.prices[static_cast<std::size_t>(item)];
}

void add_to(WorkTerm& term, const PlayedWork& played, double flops) {
  ++term.launches;
  term.seconds += played.end - played.start;
  term.flops += flops;
}

RankTime rank_time(const ReplayRank& rank, const PlayedRank& played) {
  const Trace& trace = *rank.profile->trace;
  Cover computation(played.iteration_start, played.iteration_end);
  Cover all(played.iteration_start, played.iteration_end);
  std::map<WorkClass, WorkTerm> terms;
  for (const PlayedWork& work : played.works) {
    const WorkClass work_class = price_of(rank, work).work_class;
    if (work_class != WorkClass::kCommunication) computation.add(work.start, work.end);
    all.add(work.start, work.end);
    WorkTerm& term = terms[work_class];
    term.name = to_string(work_class);
    add_to(term, work, work_of(trace, work).flops);
  }
  const auto& host = trace.events.host_nanoseconds;
  RankTime time{.rank = rank.profile->rank,
                .computation_seconds = computation.seconds(),
                .host_seconds = played.host_seconds,
                .measured_host_seconds = std::accumulate(host.begin(), host.end(), 0.0) * 1e-9};
  const double busy = all.seconds();
  time.exposed_communication_seconds = busy - time.computation_seconds;
  time.idle_seconds = played.iteration_seconds() - busy;
  for (auto& [work_class, term] : terms) time.terms.push_back(std::move(term));
  return time;
}

/// Of the first rank, largest first.
template <class Choose>
std::vector<WorkTerm> kernels_that(const ReplayRank& rank,
                                   const PlayedRank& played,
                                   const Choose& are_chosen) {
  std::map<std::string, WorkTerm> terms;
  for (const PlayedWork& work : played.works) {
    const TraceWork& described = work_of(*rank.profile->trace, work);
    if (!are_chosen(described, price_of(rank, work))) continue;
    WorkTerm& term = terms[described.name];
    term.name = described.name;
    add_to(term, work, described.flops);
  }
  std::vector<WorkTerm> sorted;
  for (auto& [name, term] : terms) sorted.push_back(std::move(term));
  std::stable_sort(sorted.begin(), sorted.end(), [](const WorkTerm& a, const WorkTerm& b) {
    return a.seconds > b.seconds;
  });
  return sorted;
}

double flops_of(const RankTime& time) {
  double flops = 0;
  for (const WorkTerm& term : time.terms) flops += term.flops;
  return flops;
}

/// All ranks of GPUs that wait for each other are as slow as the slowest of them.
GpuRates rates_of(const std::vector<RankProfile>& profiles,
                  const Gpu& gpu,
                  const Calibration* calibration) {
  return GpuRates(gpu,
                  calibration,
                  {.priced_by_mask = true},
                  slowest_gpu_slowdown(profiles.front().world_size, usual_gpu_deviation().value));
}

struct Replayed {
  Replayed(const std::vector<RankProfile>& profiles,
           const Gpu& gpu,
           const Fabric& fabric,
           const Calibration* calibration)
      : rates(rates_of(profiles, gpu, calibration)) {
    std::string why;
    for (const RankProfile* profile : ranks_to_replay(profiles, why)) {
      ranks.push_back({profile, work_prices(*profile, rates, fabric)});
    }
    played = replay(ranks, rates.launch());
  }

  GpuRates rates;
  std::vector<ReplayRank> ranks;
  std::vector<PlayedRank> played;
};

/// The last part of a kernel's or operator's name, without its template arguments.
std::string short_name(const TraceWork& work) {
  if (work.kind == WorkKind::kProduct) {
    const std::vector<int64_t>& sizes = work.shapes.front();
    return fmt::format("product {} x {} x {}", sizes[1], sizes[2], sizes[3]);
  }
  if (!work.operator_name.empty()) return work.operator_name;
  return work.name.substr(0, work.name.find('<'));
}

std::string arguments(const Trace& trace, const TraceWork& work, std::size_t event) {
  const std::string& module = trace.modules[static_cast<std::size_t>(trace.events.module[event])];
  const auto direction = static_cast<Direction>(trace.events.direction[event]);
  const std::string members = Json({{"kernel", work.name},
                                    {"module", module},
                                    {"direction", to_string(direction)},
                                    {"bytes", work.bytes}})
                                  .dump(-1, ' ', false, Json::error_handler_t::replace);
  return members.substr(1, members.size() - 2);
}

void add_rank(const ReplayRank& rank, const PlayedRank& played, TraceEventFile& file) {
  const Trace& trace = *rank.profile->trace;
  const int64_t process = rank.profile->rank;
  file.name_process(process, fmt::format("rank {}", process));
  std::map<int64_t, bool> streams;  // and whether they only communicate
  for (const PlayedWork& work : played.works) {
    const auto event = static_cast<std::size_t>(work.event);
    const int64_t stream = trace.events.stream[event];
    const WorkClass work_class = price_of(rank, work).work_class;
    const auto [place, is_new] = streams.try_emplace(stream, true);
    place->second = place->second && work_class == WorkClass::kCommunication;
    file.add({.process = process,
              .thread = stream,
              .begin = trace_nanoseconds(work.start - played.iteration_start),
              .end = trace_nanoseconds(work.end - played.iteration_start)},
             short_name(work_of(trace, work)),
             to_string(work_class),
             arguments(trace, work_of(trace, work), event));
  }
  for (const auto& [stream, communicates] : streams) {
    file.name_thread(
        process, stream, fmt::format("stream {}{}", stream, communicates ? " (NCCL)" : ""));
  }
}

}  // namespace

std::optional<std::string> lacks_time(const std::vector<RankProfile>& profiles) {
  std::string why;
  if (ranks_to_replay(profiles, why).empty()) return why;
  return std::nullopt;
}

ProgramTime program_time(const std::vector<RankProfile>& profiles,
                         const Gpu& gpu,
                         const Fabric& fabric,
                         const Calibration* calibration) {
  const Replayed replayed(profiles, gpu, fabric, calibration);
  const auto& [rates, ranks, played] = replayed;
  ProgramTime time{.rates = rates.terms(Dtype::kBf16, true)};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    time.iteration_seconds = std::max(time.iteration_seconds, played[i].iteration_seconds());
    time.ranks.push_back(rank_time(ranks[i], played[i]));
    time.flops = std::max(time.flops, flops_of(time.ranks.back()));
  }
  if (gpu.peak_flops_per_second.bf16 && time.iteration_seconds > 0) {
    time.hfu = time.flops / time.iteration_seconds / *gpu.peak_flops_per_second.bf16;
  }
  time.priced_by_memory =
      kernels_that(ranks[0], played[0], [](const TraceWork& work, const WorkPrice&) {
        return work.bytes_source == BytesSource::kParameters;
      });
  time.not_priced = kernels_that(ranks[0], played[0], [](const TraceWork&, const WorkPrice& price) {
    return !price.is_known;
  });
  return time;
}

std::string program_chrome_trace(const std::vector<RankProfile>& profiles,
                                 const Gpu& gpu,
                                 const Fabric& fabric,
                                 const Calibration* calibration) {
  const Replayed replayed(profiles, gpu, fabric, calibration);
  TraceEventFile file;
  for (std::size_t i = 0; i < replayed.ranks.size(); ++i) {
    add_rank(replayed.ranks[i], replayed.played[i], file);
  }
  return std::move(file).finish(
      Json({{"tool", "onerank"},
            {"command", fmt::format("{}", fmt::join(profiles.front().program->command, " "))}})
          .dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace estimator
