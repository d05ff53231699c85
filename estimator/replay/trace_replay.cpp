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

void play(std::deque<RankPlayer>& players) {
  for (double now = 0; std::isfinite(now);) {
    for (bool any = true; any;) {
      any = false;
      for (RankPlayer& player : players) any = player.settle(now) || any;
    }
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

std::vector<PlayedRank> replay(const std::vector<ReplayRank>& ranks, const LaunchCost& launch) {
  Meetings meetings;
  for (const ReplayRank& rank : ranks) meetings.add_rank(*rank.profile->program);
  std::deque<RankPlayer> players;
  for (const ReplayRank& rank : ranks) players.emplace_back(rank, launch, meetings);
  play(players);
  std::vector<std::string> waiting;
  std::vector<PlayedRank> played;
  for (const RankPlayer& player : players) {
    if (player.is_done()) {
      played.push_back(player.result());
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

std::vector<MissingPeer> missing_peers(const std::vector<const RankProfile*>& ranks) {
  std::set<int64_t> played;
  for (const RankProfile* rank : ranks) played.insert(rank->rank);
  std::vector<MissingPeer> missing;
  for (const RankProfile* rank : ranks) {
    std::map<int64_t, std::set<int64_t>> peers;  // by communicator
    std::set<int64_t> exchanges;
    for (const TraceWork& work : rank->trace->works) {
      if (work.kind != WorkKind::kMessages) continue;
      const auto [place, is_new] = peers.try_emplace(work.communicator);
      if (is_new) exchanges.insert(work.communicator);
      if (!is_an_exchange(work)) exchanges.erase(work.communicator);
      for (const TraceMessage& message : work.messages) place->second.insert(message.peer);
    }
    for (const auto& [number, members] : peers) {
      if (exchanges.count(number) > 0) continue;
      const CommunicatorRecord& record =
          rank->program->communicators[static_cast<std::size_t>(number)];
      for (const int64_t member : members) {
        const int64_t peer = group_of(record).member(member);
        if (played.count(peer) == 0) missing.push_back({rank->rank, peer, group_of(record)});
      }
    }
  }
  return missing;
}

}  // namespace estimator
