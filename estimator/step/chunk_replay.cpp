#include "estimator/step/chunk_replay.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "estimator/replay/trace_replay.h"

namespace estimator {
namespace {

std::size_t place(int64_t value) { return static_cast<std::size_t>(value); }

Direction direction_of(const OrderEvents& events, std::size_t event) {
  return static_cast<Direction>(events.direction[event]);
}

using Events = std::vector<std::size_t>;  // places in the order, ascending

/// What of the order belongs to a chunk.
struct ChunkOrder {
  /// Of a micro-batch:
  Events forward;
  Events backward;  ///< with recompute
  /// Once in a step:
  Events gathers;  ///< of updated parameters, before the end of the first forward
  Events beside;   ///< reductions before the end of the stage's last backward
  Events at_end;   ///< reductions after it

  ChunkOrder(const OrderEvents& events, int64_t chunk) {
    std::size_t end_of_backwards = 0;
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      const Direction direction = direction_of(events, i);
      if (!is_per_micro_batch(direction)) continue;
      const bool is_forward = direction == Direction::kForward;
      if (!is_forward) end_of_backwards = i;
      if (std::max<int64_t>(0, events.chunk[i]) != chunk) continue;
      (is_forward ? forward : backward).push_back(i);
    }
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      if (events.chunk[i] != chunk) continue;
      const Direction direction = direction_of(events, i);
      const bool is_before_end = !forward.empty() && i < forward.back();
      if (direction == Direction::kOptimizerStep && is_before_end) gathers.push_back(i);
      if (direction != Direction::kReduceGradients) continue;
      (i < end_of_backwards ? beside : at_end).push_back(i);
    }
  }
};

Events merged(const Events& a, const Events& b) {
  Events all;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

/// The trace of a rank that does nothing but laps, one after the other: a micro-batch each, or what
/// comes after the last.
class LapTrace {
 public:
  LapTrace(const StepOrder& order, const PricedRecords& records, const HostWaits& waits)
      : order_(order), records_(records), waits_(waits) {
    profile_.program.emplace();
    for (const auto& [kind, name] : enum_names(GroupKind{})) communicator_of(kind).name = name;
    profile_.trace.emplace().modules = {""};
  }

  void add_micro_batch(const Events& forward, const Events& backward) {
    begin_lap();
    add_part(forward, waits_.beside_forward_seconds);
    add_part(backward, waits_.beside_backward_seconds);
    if (waits_.at_ends_of_micro_batches) wait_after(backward);
  }

  /// What comes after the micro-batch of `lap`, perhaps with others between.
  void add_end_of(std::size_t lap, const Events& events) {
    begin_lap();
    first_record_ = static_cast<int64_t>(lap) * order_.records;
    for (const std::size_t event : events) add(event);
  }

  ReplayRank rank(double host_lead_seconds = 0) const {
    return {.profile = &profile_,
            .prices = prices_,
            .issue_seconds = issue_seconds_,
            .host_lead_seconds = host_lead_seconds,
            .iterations = 1};
  }

  struct OfEvent {
    const RecordPrice* price = nullptr;  ///< of a work
    std::size_t place = 0;               ///< in the order
    std::size_t lap = 0;
  };
  const OfEvent& of_event(int64_t event) const { return of_event_[place(event)]; }
  std::size_t laps() const { return laps_; }
  /// What the host needs for the first lap.
  double host_seconds() const {
    double seconds = 0;
    for (std::size_t i = 0; i < of_event_.size() && of_event_[i].lap == 0; ++i) {
      seconds += issue_seconds_[i];
    }
    return seconds;
  }

 private:
  Trace& trace() { return *profile_.trace; }

  CommunicatorRecord& communicator_of(GroupKind group) {
    std::vector<CommunicatorRecord>& all = profile_.program->communicators;
    if (all.size() <= static_cast<std::size_t>(group))
      all.resize(static_cast<std::size_t>(group) + 1);
    return all[static_cast<std::size_t>(group)];
  }

  /// Each lap has records of its own.
  void begin_lap() {
    first_record_ = static_cast<int64_t>(laps_) * order_.records;
    ++laps_;
    trace().records = static_cast<int64_t>(laps_) * order_.records;
  }

  void add_part(const Events& events, double beside_seconds) {
    const std::size_t begin = issue_seconds_.size();
    for (const std::size_t event : events) add(event);
    const double share = beside_seconds / static_cast<double>(issue_seconds_.size() - begin);
    for (std::size_t i = begin; i < issue_seconds_.size(); ++i) issue_seconds_[i] += share;
    if (waits_.at_ends_of_parts) wait_after(events);
  }

  void wait_after(const Events& events) {
    if (events.empty()) return;
    add_event(events.back(), TraceEventKind::kHostWaitDevice, 0, waits_.seconds);
  }

  void add(std::size_t event) {
    const int64_t item = order_.events.item[event];
    switch (static_cast<OrderKind>(order_.events.kind[event])) {
      case OrderKind::kOperator:
        return add_work(event, records_.operators[place(item)]);
      case OrderKind::kCollective:
        return add_work(event, records_.collectives[place(item)]);
      case OrderKind::kRecord:
        recorded_.insert(first_record_ + item);
        return add_event(event, TraceEventKind::kRecord, first_record_ + item);
      case OrderKind::kWait: {
        // Those of the lap before are below 0; what was before the first lap has happened.
        const int64_t record = first_record_ + item;
        if (record >= 0 && !recorded_.contains(record)) return;  // of another part of the step
        return add_event(event, TraceEventKind::kStreamWait, record);
      }
    }
  }

  void add_event(std::size_t event, TraceEventKind kind, int64_t item, double issue_seconds = 0) {
    TraceEvents& events = trace().events;
    events.kind.push_back(static_cast<int64_t>(kind));
    events.stream.push_back(order_.events.stream[event]);
    events.item.push_back(item);
    events.module.push_back(0);
    issue_seconds_.push_back(issue_seconds);
    of_event_.push_back({.place = event, .lap = laps_ - 1});
  }

  void add_work(std::size_t event, const std::optional<RecordPrice>& record) {
    if (!record) return;
    const int64_t graph = records_.graphs.graph_of(event);
    const bool is_in_graph = graph != GraphLaunches::kNone;
    const auto [place, is_new] = works_.try_emplace(std::pair(&*record, is_in_graph),
                                                    static_cast<int64_t>(trace().works.size()));
    if (is_new) {
      // The other end of a message has come to it, too.
      const bool meets = record->group && !record->is_message;
      trace().works.push_back({.kind = meets ? WorkKind::kCollective : WorkKind::kKernel,
                               .communicator = meets ? static_cast<int64_t>(*record->group) : -1});
      prices_.push_back(record->price);
      double& seconds = prices_.back().seconds;
      if (is_in_graph && !record->group) {
        seconds = std::max(0.0, seconds - records_.graphs.saved_seconds);
      }
    }
    add_event(event, TraceEventKind::kLaunch, place->second, issue_seconds(event, *record, graph));
    of_event_.back().price = &*record;
    if (record->host_waits) add_event(event, TraceEventKind::kHostWaitStream, 0, waits_.seconds);
  }

  /// The host issues all of a graph with its first kernel, and none of its operators.
  double issue_seconds(std::size_t event, const RecordPrice& record, int64_t graph) {
    const bool is_in_graph = graph != GraphLaunches::kNone;
    const bool is_launched = is_in_graph && graph == last_graph_;
    last_graph_ = graph;
    if (is_launched) return 0;
    return record.issue_seconds +
           (is_in_graph ? records_.graphs.launch_seconds : dispatch_seconds(event));
  }

  double dispatch_seconds(std::size_t event) const {
    return static_cast<double>(order_.events.operators[event]) * waits_.operator_seconds;
  }

  const StepOrder& order_;
  const PricedRecords& records_;
  const HostWaits waits_;
  RankProfile profile_;
  std::size_t laps_ = 0;
  int64_t first_record_ = 0;  // of the lap
  std::set<int64_t> recorded_;
  std::map<std::pair<const RecordPrice*, bool>, int64_t> works_;  ///< in a graph, or not
  int64_t last_graph_ = GraphLaunches::kNone;
  std::vector<WorkPrice> prices_;
  std::vector<double> issue_seconds_;
  std::vector<OfEvent> of_event_;
};

/// When the works of a lap have ended.
struct PlayedLap {
  double end = 0;                     ///< of the micro-batch, on all streams
  double main_end = 0;                ///< on the stream on which the rank computes
  double forward_end = 0;             ///< the same, of its forward
  double once_end = 0;                ///< of what happens once
  double call_seconds = 0;            ///< of the collectives that happen once
  double multiprocessor_seconds = 0;  ///< the same times the share of the GPU's that they take
};

struct PlayedLaps {
  std::vector<PlayedLap> laps;
  PlayedRank played;
};

PlayedLaps play(const StepOrder& order, const LapTrace& trace, double host_lead_seconds = 0) {
  PlayedLaps result{.laps = std::vector<PlayedLap>(trace.laps()),
                    .played = replay({trace.rank(host_lead_seconds)}, LaunchCost()).front()};
  for (const PlayedWork& work : result.played.works) {
    const LapTrace::OfEvent& of = trace.of_event(work.event);
    const Direction direction = direction_of(order.events, of.place);
    PlayedLap& lap = result.laps[of.lap];
    if (!is_per_micro_batch(direction)) {
      lap.once_end = std::max(lap.once_end, work.end);
      if (of.price->group) {
        const double seconds = work.end - work.start;
        lap.call_seconds += seconds;
        lap.multiprocessor_seconds += seconds * of.price->price.occupancy.multiprocessors;
      }
      continue;
    }
    lap.end = std::max(lap.end, work.end);
    if (order.events.stream[of.place] != kMainStream) continue;
    lap.main_end = std::max(lap.main_end, work.end);
    if (direction == Direction::kForward) lap.forward_end = std::max(lap.forward_end, work.end);
  }
  return result;
}

struct Interval {
  double begin = 0, end = 0;
};

struct Call : Interval {
  GroupKind group = GroupKind::kWorld;
};

/// What the GPU does in a window of time.
class Window {
 public:
  Window(std::vector<Interval> kernels, std::vector<Call> calls)
      : kernels_(std::move(kernels)), calls_(std::move(calls)) {
    const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    std::sort(kernels_.begin(), kernels_.end(), earlier);
    std::sort(calls_.begin(), calls_.end(), earlier);
  }

  /// Where no kernel runs, the first of the calls that run counts.
  PartTime between(double begin, double end) const {
    PartTime part;
    double busy = begin;  // until then kernels run
    for (const Interval& kernel : kernels_) {
      if (kernel.end <= busy) continue;
      if (kernel.begin >= end) break;
      if (kernel.begin > busy) wait({busy, std::min(kernel.begin, end)}, part);
      busy = std::min(end, kernel.end);
    }
    if (busy < end) wait({busy, end}, part);
    // Never below 0 but for rounding: calls lie in the window and count once.
    part.compute_seconds = std::max(0.0, end - begin - sum_of(part.communication_seconds));
    return part;
  }

 private:
  void wait(const Interval& gap, PartTime& part) const {
    double waited = gap.begin;
    for (const Call& call : calls_) {
      if (call.begin >= gap.end) break;
      const double end = std::min(call.end, gap.end);
      const double begin = std::max(call.begin, waited);
      if (end <= begin) continue;
      seconds_of_axis(part.communication_seconds, call.group) += end - begin;
      waited = end;
    }
  }

  std::vector<Interval> kernels_;
  std::vector<Call> calls_;
};

}  // namespace

double PartTime::total_seconds() const { return compute_seconds + sum_of(communication_seconds); }

void add(PartTime& sum, const PartTime& part, double times) {
  sum.compute_seconds += times * part.compute_seconds;
  add(sum.communication_seconds, part.communication_seconds, times);
}

namespace {

/// The laps of a chunk: usual ones until nothing changes any more, the step's last one, another
/// that runs beside what is left of its reductions (there is none after the stage's first chunk,
/// whose backward comes last), and the step's end.
enum Lap : std::size_t { kSecond = 1, kUsual, kLast, kAfterLast };

void add_laps(LapTrace& trace, const ChunkOrder& own, int64_t chunk) {
  for (std::size_t lap = 0; lap <= kUsual; ++lap) trace.add_micro_batch(own.forward, own.backward);
  if (own.beside.empty() && own.at_end.empty()) return;
  trace.add_micro_batch(own.forward, merged(own.backward, own.beside));
  if (chunk > 0) trace.add_micro_batch(own.forward, own.backward);
  trace.add_end_of(kLast, own.at_end);
}

ReductionTime reduction_time(const std::vector<PlayedLap>& laps, double period) {
  if (laps.size() <= kLast) return {};
  const PlayedLap& last = laps[kLast];
  const bool others_follow = laps.size() > kAfterLast + 1;
  const double stage_end =
      std::max(others_follow ? laps[kAfterLast].main_end : last.main_end, last.once_end);
  const double call_seconds = last.call_seconds + laps.back().call_seconds;
  // Never below 0 but for rounding.
  const auto positive = [](double seconds) { return std::max(0.0, seconds); };
  return {
      .beside_seconds = last.call_seconds,
      .backward_added_seconds = positive(last.main_end - laps[kUsual].main_end - period),
      .left_seconds = positive(last.once_end - last.main_end),
      .next_added_seconds =
          others_follow ? positive(laps[kAfterLast].main_end - last.main_end - period) : 0,
      .end_seconds = positive(laps.back().once_end - stage_end),
      .multiprocessors =
          call_seconds > 0
              ? (last.multiprocessor_seconds + laps.back().multiprocessor_seconds) / call_seconds
              : 0,
      .communicates = call_seconds > 0};
}

/// Forward and backward of the usual lap, beside what the micro-batch before it did one period
/// earlier.
void add_parts(const PlayedLaps& laps, const LapTrace& trace, double period, ChunkReplay& chunk) {
  std::vector<Interval> kernels;
  std::vector<Call> calls;
  for (const PlayedWork& work : laps.played.works) {
    const LapTrace::OfEvent& of = trace.of_event(work.event);
    if (of.lap != kUsual) continue;
    for (const double shift : {0.0, period}) {
      const Interval ran{work.start - shift, work.end - shift};
      if (of.price->group) {
        calls.push_back({ran, of.price->axis_group});
      } else {
        kernels.push_back(ran);
      }
    }
  }
  const Window window(std::move(kernels), std::move(calls));
  const double end = laps.laps[kUsual].main_end, begin = end - period;
  const double forward_end = std::max(laps.laps[kUsual].forward_end, begin);
  chunk.forward = window.between(begin, forward_end);
  chunk.backward = window.between(forward_end, end);
}

/// The forward of the usual lap and the backward of the last.
std::vector<MicroBatchWork> shown_works(const StepOrder& order,
                                        const PlayedLaps& laps,
                                        const LapTrace& trace) {
  const std::size_t last = laps.laps.size() > kLast ? kLast : kUsual;
  std::vector<MicroBatchWork> works;
  for (const PlayedWork& work : laps.played.works) {
    const LapTrace::OfEvent& of = trace.of_event(work.event);
    const bool is_forward = direction_of(order.events, of.place) == Direction::kForward;
    const bool is_at_end = of.lap > kUsual && of.lap + 1 == laps.laps.size();
    if (of.lap != (is_forward ? kUsual : last) && !is_at_end) continue;
    const double part = is_forward
                            ? laps.laps[kSecond].main_end
                            : std::max(laps.laps[last].forward_end, laps.laps[last - 1].main_end);
    works.push_back({.event = of.place, .begin = work.start - part, .end = work.end - part});
  }
  return works;
}

}  // namespace

ChunkReplay replay_chunk(const StepOrder& order,
                         const PricedRecords& records,
                         int64_t chunk,
                         const HostWaits& waits,
                         bool keep_works) {
  const ChunkOrder own(order.events, chunk);
  LapTrace trace(order, records, waits);
  add_laps(trace, own, chunk);
  const PlayedLaps played = play(order, trace);
  const std::vector<PlayedLap>& laps = played.laps;
  const double period = laps[kUsual].end - laps[kSecond].end;

  ChunkReplay result;
  add_parts(played, trace, period, result);
  result.reduction = reduction_time(laps, period);
  if (keep_works) result.works = shown_works(order, played, trace);

  const double lead = waits.before_step.value_or(trace.host_seconds());
  const auto first_lap = [&](const Events& forward) {
    LapTrace first(order, records, waits);
    first.add_micro_batch(forward, own.backward);
    first.add_micro_batch(own.forward, own.backward);
    return play(order, first, lead).laps.front();
  };
  const double alone = lead == 0 ? laps.front().end : first_lap(own.forward).end;
  result.first_added_seconds = std::max(0.0, alone - period);
  if (!own.gathers.empty()) {
    const PlayedLap first = first_lap(merged(own.gathers, own.forward));
    result.gathers = {.seconds = first.call_seconds,
                      .added_seconds = std::max(0.0, first.end - alone)};
  }
  return result;
}

}  // namespace estimator
