#include "estimator/program/program_trace_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "estimator/base/fields.h"
#include "estimator/base/trace_event_file.h"
#include "estimator/base/units.h"
#include "estimator/replay/call_text.h"
#include "estimator/replay/meetings.h"
#include "estimator/replay/module_slices.h"

namespace estimator {
namespace {

/// Tracks of a process, in the order of their numbers.
constexpr int64_t kModuleTrack = 0;
constexpr int64_t kFirstStreamTrack = 1;
constexpr int64_t kFirstCommunicatorTrack = 1'000'000;

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const CommunicatorRecord& communicator_of(const ReplayRank& rank, const TraceWork& work) {
  return rank.profile->program->communicators[static_cast<std::size_t>(work.communicator)];
}

/// When the first work of the last iteration of all ranks begins, if that is before the iteration:
/// Perfetto drops what lies before 0 (src/trace_processor/sorter/trace_sorter.h, Push).
double origin_of(const ProgramReplay& replayed) {
  double origin = replayed.span().begin;
  for (const PlayedRank& rank : replayed.played) {
    for (const PlayedWork& work : rank.works) origin = std::min(origin, work.start);
  }
  return origin;
}

std::string slice_name(const ReplayRank& rank, const TraceWork& work) {
  if (work.kind == WorkKind::kMessages) return messages_text(work, communicator_of(rank, work));
  if (work.kind == WorkKind::kProduct) {
    const std::vector<int64_t>& sizes = work.shapes.front();
    return fmt::format("product {} x {} x {}", sizes[1], sizes[2], sizes[3]);
  }
  return short_name(work);
}

/// The ranks to or from which a work has messages.
std::vector<int64_t> peers_of(const TraceWork& work, const RankGroup& group, bool sends) {
  std::vector<int64_t> ranks;
  for (const TraceMessage& message : work.messages) {
    if (message.is_send == sends) ranks.push_back(group.member(message.peer));
  }
  return ranks;
}

/// Draws an arrow for each message of which both ends are in the file. The messages of one member
/// to another meet in their order.
class MessageArrows {
 public:
  /// The next call with messages of this rank.
  void add(const CommunicatorKey& key,
           int64_t member,
           const TraceWork& work,
           const TraceSlice& slice) {
    for (const TraceMessage& message : work.messages) {
      if (message.is_send) sends_[{key, member, message.peer}].push_back(slice);
      if (!message.is_send) receives_[{key, message.peer, member}].push_back(slice);
    }
  }

  void draw(TraceEventFile& file, std::size_t most_bytes) const {
    for (const auto& [pair, sends] : sends_) {
      const auto found = receives_.find(pair);
      if (found == receives_.end()) continue;
      const std::size_t count = std::min(sends.size(), found->second.size());
      for (std::size_t i = 0; i < count && file.size() < most_bytes; ++i) {
        file.add_arrow(sends[i], arrival(sends[i], found->second[i]), "message");
      }
    }
  }

 private:
  using Pair = std::tuple<CommunicatorKey, int64_t, int64_t>;  // from, to

  /// An arrow ends in the receive, and not before it begins.
  static TraceSlice arrival(const TraceSlice& send, const TraceSlice& receive) {
    TraceSlice arrival = receive;
    const int64_t last = std::max(receive.begin, receive.end - 1);
    arrival.begin = std::clamp(send.begin, receive.begin, last);
    return arrival;
  }

  std::map<Pair, std::vector<TraceSlice>> sends_;
  std::map<Pair, std::vector<TraceSlice>> receives_;
};

/// One rank's part of the file. Times are since `origin`, in seconds of the replay.
class RankTracks {
 public:
  RankTracks(const ReplayRank& rank,
             const PlayedRank& played,
             double origin,
             TraceEventFile& file,
             MessageArrows& arrows)
      : rank_(rank),
        played_(played),
        origin_(origin),
        process_(rank.profile->rank),
        keys_(keys_of(*rank.profile->program)),
        file_(file),
        arrows_(arrows) {}

  void add() {
    file_.name_process(process_, fmt::format("rank {}", process_));
    for (const PlayedWork& work : played_.works) add_work(work);
    name_tracks();
    add_modules();
  }

 private:
  bool has_communicator(const PlayedWork& work) const {
    return work_of(rank_, work).communicator >= 0;
  }

  int64_t nanoseconds(double time) const { return trace_nanoseconds(time - origin_); }

  int64_t track_of(const PlayedWork& work) const {
    return has_communicator(work) ? kFirstCommunicatorTrack + work_of(rank_, work).communicator
                                  : kFirstStreamTrack + stream_of(rank_, work);
  }

  void add_work(const PlayedWork& played) {
    const TraceWork& work = work_of(rank_, played);
    const int64_t track = track_of(played);
    tracks_.insert(track);
    const TraceSlice slice{.process = process_,
                           .thread = track,
                           .begin = nanoseconds(played.start),
                           .end = nanoseconds(played.end)};
    const std::string members = json_text(arguments_of(played));
    file_.add(slice,
              slice_name(rank_, work),
              to_string(price_of(rank_, played).work_class),
              members.substr(1, members.size() - 2));
    if (work.kind != WorkKind::kMessages) return;
    const CommunicatorRecord& communicator = communicator_of(rank_, work);
    arrows_.add(keys_[static_cast<std::size_t>(work.communicator)], communicator.rank, work, slice);
  }

  Json arguments_of(const PlayedWork& played) const {
    const TraceWork& work = work_of(rank_, played);
    Json arguments = {{"kernel", work.name},
                      {"module", module_of(rank_, played)},
                      {"direction", to_string(direction_of(rank_, played))},
                      {"bytes", work.bytes},
                      {"stream", stream_of(rank_, played)}};
    if (work.kind == WorkKind::kMessages && is_placed(communicator_of(rank_, work))) {
      const RankGroup group = group_of(communicator_of(rank_, work));
      arguments["sends_to"] = peers_of(work, group, true);
      arguments["receives_from"] = peers_of(work, group, false);
    }
    return arguments;
  }

  void name_tracks() {
    for (const int64_t track : tracks_) {
      if (track < kFirstCommunicatorTrack) {
        file_.name_thread(process_, track, fmt::format("stream {}", track - kFirstStreamTrack));
        continue;
      }
      const CommunicatorRecord& record =
          rank_.profile->program
              ->communicators[static_cast<std::size_t>(track - kFirstCommunicatorTrack)];
      file_.name_thread(process_,
                        track,
                        fmt::format("NCCL, {} of {} ranks",
                                    record.name.empty() ? "a group" : record.name,
                                    with_commas(record.size)));
    }
  }

  /// The stream that computes longest.
  std::optional<int64_t> computing_stream() const {
    std::map<int64_t, double> seconds;
    for (const PlayedWork& work : played_.works) {
      if (!has_communicator(work)) seconds[stream_of(rank_, work)] += work.end - work.start;
    }
    const auto most = std::max_element(
        seconds.begin(), seconds.end(), [](auto& a, auto& b) { return a.second < b.second; });
    return most == seconds.end() ? std::nullopt : std::optional(most->first);
  }

  /// What of a rank's memory was allocated at most while a module ran.
  void add_memory(Direction direction, const std::string& module, double at) {
    const auto& modules = rank_.profile->modules;
    const auto record = std::find_if(
        modules.begin(), modules.end(), [&](const ModuleRecord& m) { return m.path == module; });
    if (record == modules.end()) return;
    const int64_t bytes = direction == Direction::kForward ? record->forward_peak_bytes
                          : is_per_micro_batch(direction)  ? record->backward_peak_bytes
                                                           : 0;
    if (bytes > 0) {
      file_.add_counter(process_,
                        nanoseconds(at),
                        "allocated, at most (GiB)",
                        static_cast<double>(bytes) / static_cast<double>(kGiB));
    }
  }

  void add_modules() {
    const auto stream = computing_stream();
    if (!stream) return;
    file_.name_thread(process_, kModuleTrack, "modules");
    ModuleSlices modules(process_, kModuleTrack, file_);
    for (const PlayedWork& work : played_.works) {
      if (has_communicator(work) || stream_of(rank_, work) != *stream) continue;
      const std::string& module = module_of(rank_, work);
      const Direction direction = direction_of(rank_, work);
      if (modules.add(direction, module, nanoseconds(work.start), nanoseconds(work.end))) {
        add_memory(direction, module, work.start);
      }
    }
    modules.close();
  }

  const ReplayRank& rank_;
  const PlayedRank& played_;
  const double origin_;
  const int64_t process_;
  const std::vector<CommunicatorKey> keys_;
  TraceEventFile& file_;
  MessageArrows& arrows_;
  std::set<int64_t> tracks_;
};

}  // namespace

ProgramTrace program_trace(const ProgramReplay& replayed, std::size_t most_bytes) {
  TraceEventFile file;
  ProgramTrace trace;
  MessageArrows arrows;
  const double origin = origin_of(replayed);
  double works = 0;
  for (std::size_t i = 0; i < replayed.ranks.size(); ++i) {
    const auto own = static_cast<double>(replayed.played[i].works.size());
    const auto bytes = static_cast<double>(file.size());
    constexpr double kMargin = 1.1;  // ranks differ in the lengths of their names
    const bool has_room =
        works == 0 || bytes * (works + kMargin * own) / works < static_cast<double>(most_bytes);
    if (has_room) {
      RankTracks(replayed.ranks[i], replayed.played[i], origin, file, arrows).add();
    } else {
      trace.left_out.push_back(replayed.ranks[i].profile->rank);
    }
    if (has_room) works += own;
  }
  arrows.draw(file, most_bytes);
  const std::vector<std::string>& command = replayed.ranks.front().profile->program->command;
  trace.text =
      std::move(file).finish(json_text({{"tool", "onerank"},
                                        {"command", fmt::format("{}", fmt::join(command, " "))},
                                        {"left_out_ranks", trace.left_out}}));
  return trace;
}

}  // namespace estimator
