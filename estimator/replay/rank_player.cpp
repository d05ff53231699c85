#include "estimator/replay/rank_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "estimator/replay/call_text.h"
#include "estimator/replay/gpu_demand.h"

namespace estimator {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t index(int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

RankPlayer::RankPlayer(const ReplayRank& rank, const LaunchCost& launch, Meetings& meetings)
    : rank_(rank),
      profile_(*rank.profile),
      trace_(*rank.profile->trace),
      prices_(rank.prices),
      issue_seconds_(rank.issue_seconds),
      launch_(launch),
      meetings_(meetings),
      iterations_(rank.iterations),
      works_left_(count_wanted()),
      host_(-rank.host_lead_seconds),
      ends_(index(iterations_)),
      records_(index(iterations_ * trace_.records)) {
  works_.reserve(trace_.events.kind.size());
  for (const TraceRange& range : trace_.ranges) {
    const auto known = launch.host_ranges.find(range.name);
    if (known != launch.host_ranges.end()) range_seconds_[range.event] += known->second;
  }
  const std::vector<CommunicatorKey> keys = keys_of(*profile_.program);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    communicators_.push_back({.key = keys[i],
                              .member = profile_.program->communicators[i].rank,
                              .is_alone = meetings.is_alone(keys[i])});
  }
}

/// -1 where the rank is played to its end.
int64_t RankPlayer::count_wanted() const {
  if (!rank_.last_event) return -1;
  int64_t works = 0;
  for (int64_t event = 0; event <= *rank_.last_event; ++event) {
    if (kind_of(event) == TraceEventKind::kLaunch) ++works;
  }
  return works;
}

TraceEventKind RankPlayer::kind_of(int64_t event) const {
  return static_cast<TraceEventKind>(trace_.events.kind[index(event)]);
}

int64_t RankPlayer::item_of(int64_t event) const { return trace_.events.item[index(event)]; }

const TraceWork& RankPlayer::work_of(int64_t event) const {
  return trace_.works[index(item_of(event))];
}

const WorkPrice& RankPlayer::price_of(const Running& running) const {
  return prices_[index(item_of(running.issued.event))];
}

double RankPlayer::call_seconds(int64_t event) const {
  const TraceWork& work = work_of(event);
  const bool is_of_operator = !work.operator_name.empty() || work.kind == WorkKind::kFill;
  return launch_.call_seconds(trace_.events.operators[index(event)], is_of_operator, work.name);
}

double RankPlayer::issue_seconds(int64_t event) const {
  if (!issue_seconds_.empty()) return issue_seconds_[index(event)];
  const auto operators = static_cast<double>(trace_.events.operators[index(event)]);
  const auto python = range_seconds_.find(event);
  const double dispatching = operators * launch_.host_operator_seconds +
                             (python == range_seconds_.end() ? 0 : python->second);
  switch (static_cast<HostIssue>(trace_.events.issue[index(event)])) {
    case HostIssue::kNothing:
      return dispatching;
    case HostIssue::kCall:
      return dispatching + call_seconds(event);
    case HostIssue::kFusedUpdate:
    case HostIssue::kUnfusedUpdate:
      return dispatching + update_seconds(rank_, event);
  }
  return 0;
}

/// Records from before the replay have happened.
std::optional<double> RankPlayer::time_of_record(int64_t item, int64_t iteration) const {
  const int64_t number = iteration * trace_.records + item;
  return number < 0 ? std::optional(0.0) : records_[index(number)];
}

bool RankPlayer::settle(double now) {
  if (next() > now && seen_changes_ == meetings_.changes()) return false;
  bool any = false;
  for (bool again = true; again;) {
    again = end_works(now);
    again = issue(now) || again;
    for (Stream& stream : streams_) again = run(stream, now) || again;
    any = any || again;
  }
  if (any) is_shared_ = false;
  seen_changes_ = meetings_.changes();
  return any;
}

double RankPlayer::next() const {
  if (works_left_ == 0) return kNever;
  if (seen_changes_ < 0) return 0;  // it has not begun
  double time = kNever;
  for (const Stream& stream : streams_) {
    if (stream.running) {
      time = std::min(time, stream.running->end);
    } else if (!stream.is_empty() && !stream.next().has_come) {
      time = std::min(time, stream.next().time);
    }
  }
  return time;
}

bool RankPlayer::is_done() const {
  return works_left_ == 0 || (iteration_ == iterations_ && are_idle());
}

/// All streams, or the one with this number.
bool RankPlayer::are_idle(std::optional<int64_t> number) const {
  return std::all_of(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.number != number.value_or(stream.number) || stream.is_idle();
  });
}

bool RankPlayer::end_works(double now) {
  bool any = false;
  for (Stream& stream : streams_) {
    if (!stream.running || stream.running->end > now) continue;
    if (stream.running->are_first_blocks) {
      begin_last_blocks(*stream.running, now);
      any = true;
      continue;
    }
    const Running done = *std::exchange(stream.running, std::nullopt);
    if (done.issued.call >= 0)
      ++communicators_[index(work_of(done.issued.event).communicator)].done;
    double& last = ends_[index(done.issued.iteration)];
    last = std::max(last, done.end);
    if (done.issued.work >= 0) {
      works_[index(done.issued.work)].start = done.start;
      works_[index(done.issued.work)].end = done.end;
    }
    if (rank_.last_event && done.issued.event <= *rank_.last_event) --works_left_;
    any = true;
  }
  return any;
}

/// Until when the host waits at this event; empty if that is not known yet.
std::optional<double> RankPlayer::waited_for(int64_t event, double now) const {
  switch (kind_of(event)) {
    case TraceEventKind::kHostWaitRecord:
      return time_of_record(item_of(event), iteration_);
    case TraceEventKind::kHostWaitStream:
      return are_idle(trace_.events.stream[index(event)]) ? std::optional(now) : std::nullopt;
    case TraceEventKind::kHostWaitDevice:
      return are_idle() ? std::optional(now) : std::nullopt;
    default:
      return host_;
  }
}

/// The host is ahead of its streams until it waits for something that has not happened.
bool RankPlayer::issue(double now) {
  const auto count = static_cast<int64_t>(trace_.events.kind.size());
  bool any = false;
  while (iteration_ < iterations_) {
    if (next_event_ == count) {
      next_event_ = 0;
      ++iteration_;
      continue;
    }
    const auto until = waited_for(next_event_, now);
    if (!until) return any;
    const double seconds = issue_seconds(next_event_);
    issuing_ += seconds;
    host_ = std::max(host_, *until) + seconds;
    queue_event();
    ++next_event_;
    any = true;
  }
  return any;
}

RankPlayer::Stream& RankPlayer::stream_of(int64_t number) {
  const auto place = std::lower_bound(
      streams_.begin(), streams_.end(), number, [](const Stream& stream, int64_t wanted) {
        return stream.number < wanted;
      });
  const bool is_known = place != streams_.end() && place->number == number;
  return is_known ? *place : *streams_.insert(place, {.number = number});
}

void RankPlayer::Stream::pass_next() {
  messages.clear();
  if (++begun < issued.size()) return;
  issued.clear();
  begun = 0;
}

void RankPlayer::queue_event() {
  const TraceEventKind kind = kind_of(next_event_);
  const bool is_of_stream = kind == TraceEventKind::kLaunch || kind == TraceEventKind::kRecord ||
                            kind == TraceEventKind::kStreamWait;
  if (!is_of_stream) return;
  Issued issued{.event = next_event_, .iteration = iteration_, .time = host_};
  if (kind == TraceEventKind::kLaunch && iteration_ == iterations_ - 1) {
    issued.work = std::ssize(works_);
    works_.push_back({.event = next_event_, .issued = host_});
  }
  if (kind == TraceEventKind::kLaunch && work_of(next_event_).communicator >= 0) {
    OwnCommunicator& own = communicators_[index(work_of(next_event_).communicator)];
    issued.call = own.issued++;
    const bool is_collective = work_of(next_event_).kind == WorkKind::kCollective;
    if (is_collective) issued.collective = own.collectives++;
  }
  stream_of(trace_.events.stream[index(next_event_)]).issued.push_back(issued);
}

bool RankPlayer::run(Stream& stream, double now) {
  bool any = false;
  while (!stream.running && !stream.is_empty() && stream.next().time <= now &&
         do_next(stream, now)) {
    any = true;
  }
  return any;
}

/// What takes no time ends at once, and shares the GPU with nothing.
RankPlayer::Running RankPlayer::begun(const Issued& issued, double now) const {
  const double seconds = prices_[index(item_of(issued.event))].seconds;
  return {.issued = issued,
          .start = now,
          .updated = now,
          .remaining = seconds,
          .end = seconds > 0 ? kNever : now};
}

/// False if it can't be done yet.
bool RankPlayer::do_next(Stream& stream, double now) {
  Issued& next = stream.next();
  const int64_t item = item_of(next.event);
  next.has_come = true;
  switch (kind_of(next.event)) {
    case TraceEventKind::kRecord:
      records_[index(next.iteration * trace_.records + item)] = now;
      break;
    case TraceEventKind::kStreamWait:
      if (!time_of_record(item, next.iteration)) return false;
      break;
    default:
      if (next.call >= 0 && !can_communicate(stream)) return false;
      stream.running = begun(next, now);
  }
  stream.pass_next();
  return true;
}

/// Throws UserError when the members' tensors differ in size.
bool RankPlayer::all_have_come(const Issued& issued) {
  const TraceWork& work = work_of(issued.event);
  const OwnCommunicator& own = communicators_[index(work.communicator)];
  const Meetings::Arrivals& arrived =
      meetings_.meet(own.key, issued.collective, own.member, work.bytes);
  if (arrived.bytes == work.bytes) return arrived.is_complete;
  throw UserError({.what = "the members of a group come to one collective with different sizes",
                   .where = fmt::format("{}: {} bytes; {}: {} bytes",
                                        described(issued, 0),
                                        work.bytes,
                                        member_text(communicator_of(issued), arrived.first),
                                        arrived.bytes),
                   .help =
                       "run all these ranks by the same program; on a cluster it would hang, or "
                       "train on wrong values"});
}

bool RankPlayer::can_communicate(Stream& stream) {
  const Issued& issued = stream.next();
  const TraceWork& work = work_of(issued.event);
  const OwnCommunicator& own = communicators_[index(work.communicator)];
  if (own.done < issued.call) return false;
  if (own.is_alone) return true;
  if (work.kind == WorkKind::kCollective) return all_have_come(issued);
  if (stream.messages.empty()) {
    for (const TraceMessage& message : work.messages) {
      if (!meetings_.is_played(own.key, message.peer) || message.peer == own.member) continue;
      const int64_t from = message.is_send ? own.member : message.peer;
      const int64_t to = message.is_send ? message.peer : own.member;
      stream.messages.push_back(
          {&meetings_.meet(own.key, from, to, message.is_send), message.is_send, message.peer});
    }
  }
  return std::all_of(stream.messages.begin(), stream.messages.end(), [](const auto& message) {
    return message.has_peer_come();
  });
}

/// The blocks that found no room begin. Once the first ones are done they have the GPU's power and
/// memory for themselves and are faster: a product beside an all-gather takes 1.70 times as long as
/// alone (NVIDIA developer forum 337991: 80 % and 47 % of the peak on an H100).
void RankPlayer::begin_last_blocks(Running& running, double now) const {
  constexpr double kSecondsOfLastAlone = 80.0 / 47 - 1;  // of those of all blocks together
  const double seconds = price_of(running).seconds;
  const double alone = std::min(now - running.start, seconds);
  running.are_first_blocks = false;
  running.remaining = seconds - alone + kSecondsOfLastAlone * alone;
  running.updated = now;
  running.rate = 0;
  running.end = kNever;
}

void RankPlayer::share(double now) {
  if (std::exchange(is_shared_, true)) return;
  memory_needs_.clear();
  GpuDemand demand(memory_needs_);
  for (const Stream& stream : streams_) {
    if (stream.running) demand.add(price_of(*stream.running));
  }
  demand.share_memory();
  for (Stream& stream : streams_) {
    if (!stream.running) continue;
    Running& running = *stream.running;
    const Occupancy& occupancy = price_of(running).occupancy;
    if (occupancy.is_persistent && running.start == now) {
      running.are_first_blocks =
          demand.of_nccl() > 0 && demand.of_nccl() + occupancy.multiprocessors > 1;
    }
    if (running.are_first_blocks && demand.of_nccl() == 0) begin_last_blocks(running, now);
    const double rate = demand.rate(price_of(running));
    if (rate == running.rate) continue;
    running.remaining -= (now - running.updated) * running.rate;
    running.updated = now;
    running.rate = rate;
    running.end = now + std::max(0.0, running.remaining) / rate;
  }
}

std::vector<std::string> RankPlayer::waiting() const {
  std::vector<std::string> calls;
  std::vector<std::string> others;
  for (const Stream& stream : streams_) {
    if (stream.is_empty()) continue;
    const std::string text = described(stream.next(), stream.number);
    if (is_next_call(stream.next())) {
      calls.push_back(text + not_come(stream));
    } else {
      others.push_back(text);
    }
  }
  if (iteration_ < iterations_) {
    others.push_back(fmt::format("rank {}: the host waits for its GPU", profile_.rank));
  }
  return calls.empty() ? others : calls;
}

const CommunicatorRecord& RankPlayer::communicator_of(const Issued& issued) const {
  return profile_.program->communicators[index(work_of(issued.event).communicator)];
}

bool RankPlayer::is_next_call(const Issued& issued) const {
  return issued.call >= 0 &&
         communicators_[index(work_of(issued.event).communicator)].done == issued.call;
}

std::string RankPlayer::described(const Issued& issued, int64_t stream) const {
  const std::string& module = trace_.modules[index(trace_.events.module[index(issued.event)])];
  const auto direction = static_cast<Direction>(trace_.events.direction[index(issued.event)]);
  const std::string place = to_string(direction) + (module.empty() ? "" : ", in " + module);
  if (issued.call < 0) {
    return fmt::format("rank {}: stream {} waits for another ({})", profile_.rank, stream, place);
  }
  return fmt::format("rank {}: {} ({} in step {}, {})",
                     profile_.rank,
                     call_text(work_of(issued.event), communicator_of(issued)),
                     call_number_text(trace_, issued.event),
                     issued.iteration + 1,
                     place);
}

/// ": rank 1 has not come to it", of those that are played.
std::string RankPlayer::not_come(const Stream& stream) const {
  const Issued& issued = stream.next();
  std::vector<int64_t> members;
  if (issued.collective >= 0) {
    members = meetings_.missing(communicators_[index(work_of(issued.event).communicator)].key,
                                issued.collective);
  }
  for (const OpenMessage& message : stream.messages) {
    if (message.has_peer_come() || contains(members, message.peer)) continue;
    members.push_back(message.peer);
  }
  if (members.empty()) return "";
  return fmt::format(": {} {} not come to it",
                     members_text(communicator_of(issued), members),
                     members.size() == 1 ? "has" : "have");
}

PlayedRank RankPlayer::take_result() {
  return {.iteration_start = iterations_ > 1 ? ends_[index(iterations_ - 2)] : 0,
          .iteration_end = ends_.back(),
          .host_seconds = issuing_ / static_cast<double>(iterations_),
          .works = std::move(works_)};
}

}  // namespace estimator
