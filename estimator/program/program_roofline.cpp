#include "estimator/program/program_roofline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "estimator/base/text.h"
#include "estimator/cluster/roofline_rows.h"
#include "estimator/communication/fabric.h"
#include "estimator/replay/work_bytes.h"

namespace estimator {
namespace {

/// What a moment of the step can wait for.
using Cause = double Waits::*;

Bound bound_of(const TraceWork& work, const WorkPrice& price, const GpuRates& rates) {
  const double launch = rates.launch().kernel_seconds;
  const double working = price.seconds - launch;
  if (working <= launch) return Bound::kLaunch;
  if (!is_bound_by_arithmetic(price)) return Bound::kMemory;
  constexpr double kNearly = 0.99;
  const double bytes = moved_bytes(work);
  const bool moves_as_long =
      bytes > 0 && bytes / rates.memory_bytes_per_second(bytes) >= kNearly * working;
  return moves_as_long ? Bound::kMemory : Bound::kCompute;
}

/// The place of a rank, and the causes of its works.
class Causes {
 public:
  Causes(const ProgramReplay& replayed, std::size_t rank)
      : replayed_(replayed), rank_(replayed.ranks[rank]) {}

  Cause of(const TraceWork& work, const WorkPrice& price, Direction direction) const {
    if (price.work_class == WorkClass::kCommunication) {
      return is_inside_machine(work) ? &Waits::nvlink : &Waits::network;
    }
    if (direction == Direction::kOptimizerStep) return &Waits::optimizer;
    switch (bound_of(work, price, replayed_.rates)) {
      case Bound::kCompute:
        return &Waits::compute;
      case Bound::kMemory:
        return &Waits::bandwidth;
      case Bound::kLaunch:
        return &Waits::launch;
    }
    return &Waits::launch;
  }

 private:
  /// What has no communicator goes to memory that the ranks of a domain share.
  bool is_inside_machine(const TraceWork& work) const {
    if (work.communicator < 0) return true;
    const CommunicatorRecord& record =
        rank_.profile->program->communicators[static_cast<std::size_t>(work.communicator)];
    const RankGroup group = group_of(record);
    if (work.messages.empty()) return place(group, replayed_.fabric).domains() == 1;
    const int64_t own = group.member(record.rank);
    return std::all_of(
        work.messages.begin(), work.messages.end(), [&](const TraceMessage& message) {
          return replayed_.fabric.same_domain(own, group.member(message.peer));
        });
  }

  const ProgramReplay& replayed_;
  const ReplayRank& rank_;
};

/// A work of the rank as the sweep below sees it.
struct Span {
  double start = 0, end = 0, issued = 0;
  Cause cause = nullptr;
  bool communicates = false;
};

std::vector<Span> spans_of(const ProgramReplay& replayed, std::size_t place) {
  const ReplayRank& rank = replayed.ranks[place];
  const Causes causes(replayed, place);
  std::vector<Span> spans;
  for (const PlayedWork& played : replayed.played[place].works) {
    const WorkPrice& price = price_of(rank, played);
    spans.push_back({.start = played.start,
                     .end = played.end,
                     .issued = played.issued,
                     .cause = causes.of(work_of(rank, played), price, direction_of(rank, played)),
                     .communicates = price.work_class == WorkClass::kCommunication});
  }
  std::stable_sort(
      spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  return spans;
}

/// Divides the iteration among its causes.
Waits waits_of(const ProgramReplay& replayed, std::size_t place) {
  const PlayedRank& played = replayed.played[place];
  const std::vector<Span> spans = spans_of(replayed, place);
  std::set<double> times = {played.iteration_start, played.iteration_end};
  for (const Span& span : spans) {
    times.insert(std::clamp(span.start, played.iteration_start, played.iteration_end));
    times.insert(std::clamp(span.end, played.iteration_start, played.iteration_end));
  }
  Waits waits;
  std::vector<const Span*> running;
  auto next = spans.begin();
  double from = *times.begin();
  for (const double until : times) {
    const double seconds = until - from;
    if (seconds > 0) {
      std::erase_if(running, [&](const Span* span) { return span->end <= from; });
      for (; next != spans.end() && next->start <= from; ++next) {
        if (next->end > from) running.push_back(&*next);
      }
      const auto kernels = std::count_if(
          running.begin(), running.end(), [](const Span* span) { return !span->communicates; });
      const auto all = static_cast<int64_t>(running.size());
      const auto count = static_cast<double>(kernels > 0 ? kernels : all);
      for (const Span* span : running) {
        if (kernels == 0 || !span->communicates) waits.*span->cause += seconds / count;
      }
      if (running.empty()) {
        const double asked = next == spans.end() ? from : std::clamp(next->issued, from, until);
        waits.launch += asked - from;
        waits.bubble += until - asked;
      }
    }
    from = until;
  }
  return waits;
}

/// The step if all works that wait for `cause` took half as long.
double seconds_if_halved(const ProgramReplay& replayed, Cause cause) {
  std::vector<ReplayRank> ranks = replayed.ranks;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const Causes causes(replayed, place);
    ReplayRank& rank = ranks[place];
    std::set<std::size_t> halved;
    for (const PlayedWork& played : replayed.played[place].works) {
      const auto item = static_cast<std::size_t>(
          rank.profile->trace->events.item[static_cast<std::size_t>(played.event)]);
      const WorkPrice& price = replayed.ranks[place].prices[item];
      const bool is_of_cause =
          causes.of(work_of(rank, played), price, direction_of(rank, played)) == cause;
      if (is_of_cause && halved.insert(item).second) rank.prices[item].seconds /= 2;
    }
  }
  LaunchCost launch = replayed.rates.launch();
  if (cause == &Waits::launch) launch.slow_host(0.5);
  double seconds = 0;
  for (const PlayedRank& rank : replay(ranks, launch)) {
    seconds = std::max(seconds, rank.iteration_seconds());
  }
  return seconds;
}

/// "layers.3.mlp" and "layers.4.mlp" are one module to a reader, "layers.*.mlp".
std::string module_of_any_layer(const std::string& path) {
  if (path.empty()) return "(no module)";
  std::vector<std::string> parts = split(path, '.');
  for (std::string& part : parts) {
    if (is_digits(part)) part = "*";
  }
  return fmt::format("{}", fmt::join(parts, "."));
}

std::vector<PricedKernel> kernels_of(const ProgramReplay& replayed, std::size_t place) {
  const ReplayRank& rank = replayed.ranks[place];
  using Key = std::tuple<int64_t, Direction, std::string>;  // work, direction, module
  std::map<Key, PricedKernel> kernels;
  for (const PlayedWork& played : replayed.played[place].works) {
    const WorkPrice& price = price_of(rank, played);
    if (price.work_class == WorkClass::kCommunication) continue;
    const TraceWork& work = work_of(rank, played);
    const auto item = rank.profile->trace->events.item[static_cast<std::size_t>(played.event)];
    const std::string module = module_of_any_layer(module_of(rank, played));
    PricedKernel& kernel = kernels[{item, direction_of(rank, played), module}];
    if (kernel.record.count++ > 0) continue;
    kernel.record.name = short_name(work);
    kernel.record.shapes = work.shapes;
    kernel.record.dtype = work.dtype;
    kernel.record.flops = work.flops;
    kernel.record.bytes = moved_bytes(work);
    kernel.record.direction = direction_of(rank, played);
    kernel.record.module_kind = module;
    kernel.price = {price.seconds, bound_of(work, price, replayed.rates)};
  }
  std::vector<PricedKernel> list;
  list.reserve(kernels.size());
  for (auto& [key, kernel] : kernels) list.push_back(std::move(kernel));
  return list;
}

double kernel_seconds(const ProgramReplay& replayed, std::size_t place) {
  double seconds = 0;
  for (const PricedKernel& kernel : kernels_of(replayed, place)) seconds += kernel.seconds();
  return seconds;
}

}  // namespace

Roofline program_roofline(const ProgramReplay& replayed) {
  std::size_t busiest = 0;
  double most = -1;
  for (std::size_t place = 0; place < replayed.ranks.size(); ++place) {
    const double seconds = kernel_seconds(replayed, place);
    if (seconds > most) busiest = place;
    most = std::max(most, seconds);
  }
  const Gpu& gpu = replayed.rates.gpu();
  const Dtype dtype = gpu.peak_flops_per_second.bf16 ? Dtype::kBf16 : Dtype::kFp16;
  Roofline roofline;
  roofline.rank = replayed.ranks[busiest].profile->rank;
  roofline.iteration_seconds = replayed.iteration_seconds();
  set_rows(kernels_of(replayed, busiest), gpu, dtype, roofline);
  roofline.command = replayed.ranks.front().profile->program->command;
  const Waits waits = waits_of(replayed, busiest);
  roofline.bounds = bounds_of(waits, roofline.iteration_seconds, [&](Cause cause) {
    return cause == &Waits::bubble ? std::nullopt
                                   : std::optional(seconds_if_halved(replayed, cause));
  });
  roofline.rates = replayed.rates.terms(dtype, true);
  return roofline;
}

}  // namespace estimator
