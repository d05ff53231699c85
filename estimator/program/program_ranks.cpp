#include "estimator/program/program_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "estimator/base/contains.h"
#include "estimator/base/fields.h"
#include "estimator/base/stable_hash.h"
#include "estimator/base/units.h"
#include "estimator/replay/trace_replay.h"

namespace estimator {
namespace {

/// How often each work is asked for, whoever it is done with.
std::map<std::string, int64_t> works_of(const Trace& trace) {
  std::vector<std::string> texts;
  for (TraceWork work : trace.works) {
    if (work.communicator >= 0) work.communicator = 0;
    for (TraceMessage& message : work.messages) message.peer = 0;
    texts.push_back(to_json(work).dump());
  }
  std::map<std::string, int64_t> counts;
  for (const TraceLaunch& launch : trace.launches()) {
    ++counts[texts[static_cast<std::size_t>(launch.item)]];
  }
  return counts;
}

std::set<int64_t> numbers_of(const std::vector<RankProfile>& profiles) {
  std::set<int64_t> ranks;
  for (const RankProfile& profile : profiles) ranks.insert(profile.rank);
  return ranks;
}

std::vector<const RankProfile*> traced(const std::vector<RankProfile>& profiles) {
  std::vector<const RankProfile*> ranks;
  for (const RankProfile& profile : profiles) {
    if (profile.trace) ranks.push_back(&profile);
  }
  return ranks;
}

/// All members of the communicators over which ranks wait for somebody who was not run: they wait
/// for each other in turn. Of a group that is too large to be a pipeline, only who was waited for.
std::set<int64_t> members_waited_for(const std::vector<MissingPeer>& missing) {
  constexpr int64_t kLargestPipeline = 1024;
  std::set<int64_t> members;
  for (const MissingPeer& peer : missing) {
    const bool is_new = members.insert(peer.peer).second;
    if (!is_new || peer.group.size() > kLargestPipeline) continue;
    for (int64_t i = 0; i < peer.group.size(); ++i) members.insert(peer.group.member(i));
  }
  return members;
}

/// Leaves out the ranks that wait for somebody who is not among `ranks` and do like one that does
/// not wait, and then those that waited for them.
std::vector<const RankProfile*> without_waiting(std::vector<const RankProfile*> ranks) {
  for (std::size_t before = 0; before != ranks.size();) {
    before = ranks.size();
    std::set<int64_t> waiting;
    for (const MissingPeer& peer : missing_peers(ranks)) waiting.insert(peer.rank);
    const auto waits = [&](const RankProfile* rank) { return waiting.count(rank->rank) > 0; };
    const std::vector<const RankProfile*> all = ranks;
    std::erase_if(ranks, [&](const RankProfile* rank) {
      return waits(rank) && std::any_of(all.begin(), all.end(), [&](const RankProfile* other) {
               return !waits(other) && are_alike(*rank, *other);
             });
    });
  }
  return ranks;
}

std::vector<int64_t> without(const std::set<int64_t>& ranks, const std::set<int64_t>& run) {
  std::vector<int64_t> left;
  std::set_difference(ranks.begin(), ranks.end(), run.begin(), run.end(), std::back_inserter(left));
  return left;
}

/// From the end of the optimizer step before it to the end of its own.
double last_iteration_seconds(const RankProfile& profile) {
  const std::string last =
      fmt::format("iteration_{}.", std::max<int64_t>(1, profile.program->optimizer_steps) - 1);
  double seconds = 0;
  for (const PhaseRecord& phase : profile.phases) {
    if (phase.name.starts_with(last)) seconds += phase.seconds;
  }
  return seconds;
}

std::string why_untraced(const RankProfile& profile) {
  if (profile.device.kind == DeviceKind::kCuda) {
    return fmt::format(
        "rank {} ran on a real GPU, whose kernels are not recorded. Its last iteration took {} by "
        "the host's clock, with every answer of NCCL at once",
        profile.rank,
        format_duration(last_iteration_seconds(profile)));
  }
  return fmt::format(
      "rank {} has no trace: of a program on the virtual GPU the second optimizer step is "
      "recorded (--steps 2), and this one took {}",
      profile.rank,
      profile.program->optimizer_steps);
}

/// What was recorded is a part of an iteration, whose time is not that of a step.
bool lacks_backward(const RankProfile& profile) {
  return contains(profile.program->recorded_with, std::string(kWithoutBackward));
}

/// Why it has no step to replay, or "".
std::string why_without_step(const RankProfile& profile) {
  if (!profile.trace) return why_untraced(profile);
  if (!lacks_backward(profile)) return "";
  return fmt::format(
      "no backward ran in iteration {} of rank {}, which was recorded, although others had one: it "
      "is no step of training. Let the program take another number of --steps",
      profile.program->recorded_iteration,
      profile.rank);
}

}  // namespace

bool are_alike(const RankProfile& a, const RankProfile& b) {
  return a.peak.allocated_bytes == b.peak.allocated_bytes &&
         a.peak.reserved_bytes == b.peak.reserved_bytes &&
         a.trace.has_value() == b.trace.has_value() &&
         (!a.trace || works_of(*a.trace) == works_of(*b.trace));
}

std::vector<const RankProfile*> ranks_to_replay(const std::vector<RankProfile>& profiles,
                                                std::string& why) {
  for (const RankProfile& profile : profiles) {
    why = why_without_step(profile);
    if (!why.empty()) return {};
  }
  const std::vector<const RankProfile*> all = traced(profiles);
  std::vector<const RankProfile*> ranks = without_waiting(all);
  if (missing_peers(ranks).empty()) return ranks;
  const std::vector<MissingPeer> missing = missing_peers(all);
  std::set<int64_t> to_run = members_waited_for(missing);
  for (const int64_t rank : numbers_of(profiles)) to_run.insert(rank);
  why = fmt::format(
      "rank {} waits for messages of rank {}, which was not run: give --ranks {}, or --ranks auto",
      missing.front().rank,
      missing.front().peer,
      fmt::join(to_run, ","));
  return {};
}

std::optional<int64_t> drawn_rank(int64_t world_size) {
  constexpr int64_t kFirstAndLast = 2;
  if (world_size <= kFirstAndLast) return std::nullopt;
  const uint64_t lot = stable_hash(std::to_string(world_size));
  return 1 + static_cast<int64_t>(lot % static_cast<uint64_t>(world_size - kFirstAndLast));
}

std::vector<int64_t> ranks_to_run_next(const std::vector<RankProfile>& profiles,
                                       int64_t world_size,
                                       int64_t most) {
  const std::set<int64_t> run = numbers_of(profiles);
  const auto left = most - static_cast<int64_t>(run.size());
  const auto limited = [&](std::vector<int64_t> ranks) {
    if (static_cast<int64_t>(ranks.size()) > left) ranks.resize(static_cast<std::size_t>(left));
    return ranks;
  };
  std::set<int64_t> probes = {world_size - 1};
  if (const auto drawn = drawn_rank(world_size)) probes.insert(*drawn);
  const auto is_probe = [&](const RankProfile& profile) { return probes.contains(profile.rank); };
  std::set<int64_t> asked = probes;
  asked.insert(0);
  std::string why;
  if (!profiles.empty() && ranks_to_replay(profiles, why).empty()) {
    const std::vector<const RankProfile*> all = traced(profiles);
    std::vector<const RankProfile*> known = all;
    std::erase_if(known, [&](const RankProfile* rank) { return is_probe(*rank); });
    asked.merge(members_waited_for(missing_peers(known)));
    if (without(asked, run).empty()) asked.merge(members_waited_for(missing_peers(all)));
  }
  if (const auto ranks = without(asked, run); !ranks.empty()) return limited(ranks);
  const auto is_like_no_other = [&](const RankProfile& probe) {
    return std::none_of(profiles.begin(), profiles.end(), [&](const RankProfile& profile) {
      return &profile != &probe && are_alike(profile, probe);
    });
  };
  const bool is_new_kind =
      std::any_of(profiles.begin(), profiles.end(), [&](const RankProfile& profile) {
        return is_probe(profile) && is_like_no_other(profile);
      });
  const int64_t middle = world_size / 2;
  if (is_new_kind && run.count(middle) == 0) return limited({middle});
  return {};
}

}  // namespace estimator
