#include "estimator/replay/trace_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "estimator/base/errors.h"
#include "estimator/replay/meetings.h"
#include "estimator/replay/rank_player.h"

namespace estimator {
namespace {

/// What runs shares its GPU only when all that begins at this time has begun on every rank.
/// Otherwise the order of the ranks would decide which of two works began first.
void play_at(double now, std::deque<RankPlayer>& players) {
  for (bool any = true; any;) {
    any = false;
    for (RankPlayer& player : players) any = player.settle(now) || any;
  }
  for (RankPlayer& player : players) player.share(now);
}

void play(std::deque<RankPlayer>& players) {
  for (double now = 0; std::isfinite(now);) {
    play_at(now, players);
    now = std::numeric_limits<double>::infinity();
    for (const RankPlayer& player : players) now = std::min(now, player.next());
  }
}

bool is_an_exchange(const TraceWork& work) {
  const auto sends = std::count_if(
      work.messages.begin(), work.messages.end(), [](const auto& m) { return m.is_send; });
  return 2 * sends == static_cast<int64_t>(work.messages.size());
}

}  // namespace

double update_seconds(const ReplayRank& rank, int64_t event) {
  const TraceEvents& events = rank.profile->trace->events;
  const auto place = static_cast<std::size_t>(event);
  if (static_cast<TraceEventKind>(events.kind[place]) != TraceEventKind::kHostUpdates) return 0;
  const auto bytes = static_cast<double>(events.item[place]);
  const bool is_fused = static_cast<HostIssue>(events.issue[place]) == HostIssue::kFusedUpdate;
  return bytes / (is_fused ? rank.cpu_optimizer.fused_bytes_per_second
                           : rank.cpu_optimizer.unfused_bytes_per_second);
}

std::vector<PlayedRank> replay(const std::vector<ReplayRank>& ranks, const LaunchCost& launch) {
  Meetings meetings;
  for (const ReplayRank& rank : ranks) meetings.add_rank(*rank.profile->program);
  std::deque<RankPlayer> players;
  for (const ReplayRank& rank : ranks) players.emplace_back(rank, launch, meetings);
  play(players);
  std::vector<std::string> waiting;
  std::vector<PlayedRank> played;
  for (RankPlayer& player : players) {
    if (player.is_done()) {
      played.push_back(player.take_result());
    } else {
      for (const std::string& line : player.waiting()) waiting.push_back(line);
    }
  }
  if (!waiting.empty()) {
    throw UserError({.what = "the ranks wait for each other for ever",
                     .where = fmt::format("{}", fmt::join(waiting, "\n  ")),
                     .help = "the program would hang on a cluster: see that all members of a group "
                             "call the same collectives in the same order, and that every message "
                             "has both its ends"});
  }
  return played;
}

std::map<int64_t, std::set<int64_t>> ranks_of_messages(const RankProfile& profile) {
  std::map<int64_t, std::set<int64_t>> ranks;
  std::set<int64_t> not_exchanges;  // communicators
  for (const TraceWork& work : profile.trace->works) {
    if (work.kind != WorkKind::kMessages) continue;
    if (!is_an_exchange(work)) not_exchanges.insert(work.communicator);
    const RankGroup group =
        group_of(profile.program->communicators[static_cast<std::size_t>(work.communicator)]);
    for (const TraceMessage& message : work.messages) {
      ranks[work.communicator].insert(group.member(message.peer));
    }
  }
  std::erase_if(ranks, [&](const auto& entry) { return !not_exchanges.contains(entry.first); });
  return ranks;
}

std::vector<MissingPeer> missing_peers(const std::vector<const RankProfile*>& ranks) {
  std::set<int64_t> played;
  for (const RankProfile* rank : ranks) played.insert(rank->rank);
  std::vector<MissingPeer> missing;
  for (const RankProfile* rank : ranks) {
    for (const auto& [number, peers] : ranks_of_messages(*rank)) {
      const RankGroup group =
          group_of(rank->program->communicators[static_cast<std::size_t>(number)]);
      for (const int64_t peer : peers) {
        if (!played.contains(peer)) missing.push_back({rank->rank, peer, group});
      }
    }
  }
  return missing;
}

}  // namespace estimator
