#include "estimator/replay/trace_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "estimator/base/errors.h"

namespace estimator {
namespace {

/// Until the third iteration everything that one iteration leaves to the next has settled.
constexpr int64_t kIterations = 3;

/// Tells communicators apart across ranks, by name and members, and by their order among those that
/// have the same.
struct CommunicatorKey {
  std::string name;
  int64_t first = 0;
  int64_t stride = 1;
  int64_t size = 1;
  int64_t number = 0;
  auto operator<=>(const CommunicatorKey&) const = default;
};

std::vector<CommunicatorKey> keys_of(const ProgramRecord& program) {
  std::vector<CommunicatorKey> keys;
  for (const CommunicatorRecord& record : program.communicators) {
    const RankGroup group = group_of(record);
    CommunicatorKey key{record.name, group.first, group.spans.front().stride, record.size};
    while (std::find(keys.begin(), keys.end(), key) != keys.end()) ++key.number;
    keys.push_back(key);
  }
  return keys;
}

/// One end of a message: when it was reached, if it was.
using Arrival = std::optional<double>;

struct Message {
  Arrival send;
  Arrival receive;
};

/// What the played ranks have come to.
class Meetings {
 public:
  explicit Meetings(const std::vector<ReplayRank>& ranks) {
    for (const ReplayRank& rank : ranks) {
      const ProgramRecord& program = *rank.profile->program;
      const std::vector<CommunicatorKey> keys = keys_of(program);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        members_[keys[i]].insert(program.communicators[i].rank);
      }
    }
  }

  bool is_played(const CommunicatorKey& key, int64_t member) const {
    return members_.at(key).count(member) > 0;
  }

  /// Member `member` comes to collective number `call`. Empty until all have come; then the time of
  /// the last one.
  std::optional<double> meet(const CommunicatorKey& key,
                             int64_t call,
                             int64_t member,
                             double time) {
    auto& arrivals = collectives_[{key, call}];
    arrivals[member] = time;
    if (arrivals.size() < members_.at(key).size()) return std::nullopt;
    double last = 0;
    for (const auto& [other, arrival] : arrivals) last = std::max(last, arrival);
    return last;
  }

  /// The next message between two members, as the sender or the receiver counts them.
  Message& next(const CommunicatorKey& key, int64_t from, int64_t to, bool is_send) {
    const int64_t number = counts_[{key, from, to, is_send}]++;
    return messages_[{key, from, to, number}];
  }

 private:
  std::map<CommunicatorKey, std::set<int64_t>> members_;
  std::map<std::pair<CommunicatorKey, int64_t>, std::map<int64_t, double>> collectives_;
  std::map<std::tuple<CommunicatorKey, int64_t, int64_t, bool>, int64_t> counts_;
  std::map<std::tuple<CommunicatorKey, int64_t, int64_t, int64_t>, Message> messages_;
};

/// An event that the host has issued, in its stream's queue.
struct Issued {
  int64_t event = 0;
  int64_t iteration = 0;
  double time = 0;
  int64_t call = -1;  ///< of NCCL: its number on the communicator
  std::vector<std::pair<Message*, TraceMessage>> messages = {};  ///< once it was come to
};

class Player {
 public:
  Player(const ReplayRank& rank, const LaunchCost& launch, Meetings& meetings)
      : profile_(*rank.profile),
        trace_(*rank.profile->trace),
        prices_(rank.prices),
        launch_(launch),
        meetings_(meetings),
        records_(static_cast<std::size_t>(kIterations * trace_.records)) {
    const std::vector<CommunicatorKey> keys = keys_of(*profile_.program);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      communicators_.push_back({.key = keys[i], .member = profile_.program->communicators[i].rank});
    }
  }

  bool is_done() const {
    return iteration_ == kIterations && std::all_of(streams_.begin(), streams_.end(), [](auto& s) {
             return s.second.queue.empty();
           });
  }

  /// Goes as far as it can; whether that was any further.
  bool progress() {
    bool any = false;
    for (bool again = true; again;) {
      again = issue();
      for (auto& [number, stream] : streams_) again = run(stream) || again;
      any = any || again;
    }
    return any;
  }

  /// "rank 3: reduce_scatter on dp (layers.3)", for what stands still.
  std::vector<std::string> waiting() const {
    std::vector<std::string> lines;
    for (const auto& [number, stream] : streams_) {
      if (!stream.queue.empty()) lines.push_back(described(stream.queue.front(), number));
    }
    if (iteration_ < kIterations)
      lines.push_back(fmt::format("rank {}: the host waits", profile_.rank));
    return lines;
  }

  PlayedRank result() const {
    PlayedRank played{.iteration_start = ends_[kIterations - 2],
                      .iteration_end = ends_[kIterations - 1],
                      .host_seconds = issuing_ / static_cast<double>(kIterations),
                      .works = works_};
    std::sort(played.works.begin(), played.works.end(), [](const auto& a, const auto& b) {
      return a.event < b.event;
    });
    return played;
  }

 private:
  struct Stream {
    double free = 0;  ///< when all that it has done is over
    std::deque<Issued> queue;
  };
  struct OwnCommunicator {
    CommunicatorKey key;
    int64_t member = 0;
    int64_t issued = 0;  ///< calls
    int64_t done = 0;
    double free = 0;
  };

  static std::size_t index(int64_t value) { return static_cast<std::size_t>(value); }
  TraceEventKind kind_of(int64_t event) const {
    return static_cast<TraceEventKind>(trace_.events.kind[index(event)]);
  }
  const TraceWork& work_of(int64_t event) const {
    return trace_.works[index(trace_.events.item[index(event)])];
  }

  /// When a record happens, if that is known. Records from before the replay have happened.
  std::optional<double> time_of_record(int64_t item, int64_t iteration) const {
    const int64_t number = iteration * trace_.records + item;
    return number < 0 ? std::optional(0.0) : records_[index(number)];
  }

  double issue_seconds(int64_t event) const {
    switch (static_cast<HostIssue>(trace_.events.issue[index(event)])) {
      case HostIssue::kNothing:
        return 0;
      case HostIssue::kForward:
        return launch_.host_forward_seconds;
      case HostIssue::kBackward:
        return launch_.host_backward_seconds;
    }
    return 0;
  }

  /// The time until which the host waits here; empty if that is not known yet.
  std::optional<double> waited_for(int64_t event) const {
    const auto done = [](const Stream& stream) { return stream.queue.empty(); };
    switch (kind_of(event)) {
      case TraceEventKind::kHostWaitRecord:
        return time_of_record(trace_.events.item[index(event)], iteration_);
      case TraceEventKind::kHostWaitStream: {
        const auto found = streams_.find(trace_.events.stream[index(event)]);
        if (found == streams_.end()) return 0;
        return done(found->second) ? std::optional(found->second.free) : std::nullopt;
      }
      case TraceEventKind::kHostWaitDevice: {
        double last = 0;
        for (const auto& [number, stream] : streams_) {
          if (!done(stream)) return std::nullopt;
          last = std::max(last, stream.free);
        }
        return last;
      }
      default:
        return 0;
    }
  }

  /// The host goes on until it waits for something that is not known yet.
  bool issue() {
    const auto count = static_cast<int64_t>(trace_.events.kind.size());
    bool any = false;
    while (iteration_ < kIterations) {
      if (next_ == count) {
        next_ = 0;
        ++iteration_;
        continue;
      }
      const auto until = waited_for(next_);
      if (!until) return any;
      const double seconds = issue_seconds(next_);
      issuing_ += seconds;
      host_ = std::max(host_ + seconds, *until);
      queue_event();
      ++next_;
      any = true;
    }
    return any;
  }

  void queue_event() {
    const TraceEventKind kind = kind_of(next_);
    const bool is_of_stream = kind == TraceEventKind::kLaunch || kind == TraceEventKind::kRecord ||
                              kind == TraceEventKind::kStreamWait;
    if (!is_of_stream) return;
    Issued issued{.event = next_, .iteration = iteration_, .time = host_};
    if (kind == TraceEventKind::kLaunch && work_of(next_).communicator >= 0) {
      issued.call = communicators_[index(work_of(next_).communicator)].issued++;
    }
    streams_[trace_.events.stream[index(next_)]].queue.push_back(std::move(issued));
  }

  bool run(Stream& stream) {
    bool any = false;
    while (!stream.queue.empty() && run_first(stream)) {
      stream.queue.pop_front();
      any = true;
    }
    return any;
  }

  /// False if it can't be done yet.
  bool run_first(Stream& stream) {
    Issued& first = stream.queue.front();
    const int64_t item = trace_.events.item[index(first.event)];
    switch (kind_of(first.event)) {
      case TraceEventKind::kRecord:
        records_[index(first.iteration * trace_.records + item)] =
            std::max(stream.free, first.time);
        return true;
      case TraceEventKind::kStreamWait: {
        const auto until = time_of_record(item, first.iteration);
        if (until) stream.free = std::max(stream.free, *until);
        return until.has_value();
      }
      default:
        return first.call >= 0 ? communicate(stream, first) : compute(stream, first);
    }
  }

  bool compute(Stream& stream, const Issued& first) {
    const double start = std::max(stream.free, first.time);
    finish(stream, first, start, start + seconds_of(first));
    return true;
  }

  bool communicate(Stream& stream, Issued& first) {
    const TraceWork& work = work_of(first.event);
    OwnCommunicator& own = communicators_[index(work.communicator)];
    if (own.done < first.call) return false;
    const double here = std::max({stream.free, first.time, own.free});
    const auto start = work.kind == WorkKind::kCollective
                           ? meetings_.meet(own.key, first.call, own.member, here)
                           : meet_peers(first, work, own, here);
    if (!start) return false;
    ++own.done;
    own.free = *start + seconds_of(first);
    finish(stream, first, std::max(here, *start), own.free);
    return true;
  }

  /// When the last of the messages begins; empty until all their other ends are there.
  std::optional<double> meet_peers(Issued& first,
                                   const TraceWork& work,
                                   const OwnCommunicator& own,
                                   double here) {
    if (first.messages.empty()) {
      for (const TraceMessage& message : work.messages) {
        if (!meetings_.is_played(own.key, message.peer) || message.peer == own.member) continue;
        const int64_t from = message.is_send ? own.member : message.peer;
        const int64_t to = message.is_send ? message.peer : own.member;
        Message& met = meetings_.next(own.key, from, to, message.is_send);
        (message.is_send ? met.send : met.receive) = here;
        first.messages.push_back({&met, message});
      }
    }
    double last = here;
    for (const auto& [met, message] : first.messages) {
      const Arrival& other = message.is_send ? met->receive : met->send;
      if (!other) return std::nullopt;
      last = std::max(last, *other);
    }
    return last;
  }

  double seconds_of(const Issued& issued) const {
    return prices_[index(trace_.events.item[index(issued.event)])].seconds;
  }

  void finish(Stream& stream, const Issued& issued, double start, double end) {
    stream.free = end;
    double& last = ends_[issued.iteration];
    last = std::max(last, end);
    if (issued.iteration == kIterations - 1) {
      works_.push_back({.event = issued.event, .start = start, .end = end});
    }
  }

  std::string described(const Issued& issued, int64_t stream) const {
    const std::string where = trace_.modules[index(trace_.events.module[index(issued.event)])];
    const std::string place = where.empty() ? "" : " in " + where;
    if (issued.call < 0) {
      return fmt::format(
          "rank {}: stream {} waits for another stream{}", profile_.rank, stream, place);
    }
    const TraceWork& work = work_of(issued.event);
    std::string peers;
    for (const TraceMessage& message : work.messages) {
      peers += fmt::format("{} {} member {}",
                           peers.empty() ? "" : ",",
                           message.is_send ? "to" : "from",
                           message.peer);
    }
    const CommunicatorRecord& record = profile_.program->communicators[index(work.communicator)];
    return fmt::format("rank {}: {} of {}{}{}",
                       profile_.rank,
                       work.name,
                       record.name.empty() ? "a communicator" : record.name,
                       peers,
                       place);
  }

  const RankProfile& profile_;
  const Trace& trace_;
  const std::vector<WorkPrice>& prices_;
  const LaunchCost& launch_;
  Meetings& meetings_;
  int64_t next_ = 0;  // event
  int64_t iteration_ = 0;
  double host_ = 0;
  double issuing_ = 0;
  double ends_[kIterations] = {};
  std::vector<std::optional<double>> records_;
  std::map<int64_t, Stream> streams_;
  std::vector<OwnCommunicator> communicators_;
  std::vector<PlayedWork> works_;
};

bool is_an_exchange(const TraceWork& work) {
  const auto sends = std::count_if(
      work.messages.begin(), work.messages.end(), [](const auto& m) { return m.is_send; });
  return 2 * sends == static_cast<int64_t>(work.messages.size());
}

}  // namespace

std::vector<PlayedRank> replay(const std::vector<ReplayRank>& ranks, const LaunchCost& launch) {
  Meetings meetings(ranks);
  std::deque<Player> players;
  for (const ReplayRank& rank : ranks) players.emplace_back(rank, launch, meetings);
  for (bool any = true; any;) {
    any = false;
    for (Player& player : players) any = player.progress() || any;
  }
  std::vector<std::string> waiting;
  std::vector<PlayedRank> played;
  for (const Player& player : players) {
    if (!player.is_done()) {
      for (const std::string& line : player.waiting()) waiting.push_back(line);
    } else {
      played.push_back(player.result());
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
