#include "estimator/step/micro_batch_replay.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "estimator/replay/trace_replay.h"

namespace estimator {
namespace {

std::size_t index(int64_t value) { return static_cast<std::size_t>(value); }

/// The events of a chunk's forward and backward, as the trace of a rank that does nothing else.
class ChunkTrace {
 public:
  ChunkTrace(const StepOrder& order,
             const PricedRecords& records,
             int64_t chunk,
             const HostWaits& waits)
      : order_(order), records_(records), chunk_(chunk), waits_(waits) {
    profile_.program.emplace();
    for (const auto& [kind, name] : enum_names(GroupKind{})) communicator_of(kind).name = name;
    trace_.modules = {""};
    const std::vector<std::size_t> events = forward_then_backward();
    for (const std::size_t event : events) number(event);
    trace_.records = static_cast<int64_t>(numbers_.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      add(events[i]);
      if (waits.at_ends_of_parts &&
          (i + 1 == events.size() ||
           is_forward_in_order(events[i]) != is_forward_in_order(events[i + 1]))) {
        add_event(events[i], TraceEventKind::kHostWaitDevice, 0, waits.seconds);
      }
    }
    profile_.trace = std::move(trace_);
  }

  ReplayRank rank(double host_lead_seconds = 0) const {
    return {&profile_, prices_, issue_seconds_, host_lead_seconds};
  }

  /// Null for an event that is no work.
  const RecordPrice* price_of(int64_t event) const { return of_event_[index(event)].price; }
  std::size_t place_in_order(int64_t event) const { return of_event_[index(event)].place; }
  bool is_forward(int64_t event) const {
    return trace().events.direction[index(event)] == static_cast<int64_t>(Direction::kForward);
  }
  bool is_on_main_stream(int64_t event) const {
    return trace().events.stream[index(event)] == kMainStream;
  }

 private:
  const Trace& trace() const { return *profile_.trace; }
  Direction direction_of(std::size_t event) const {
    return static_cast<Direction>(order_.events.direction[event]);
  }
  bool is_forward_in_order(std::size_t event) const {
    return direction_of(event) == Direction::kForward;
  }

  std::vector<std::size_t> forward_then_backward() const {
    std::vector<std::size_t> events;
    for (std::size_t i = 0; i < order_.events.kind.size(); ++i) {
      const bool is_of_chunk = std::max<int64_t>(0, order_.events.chunk[i]) == chunk_;
      if (is_of_chunk && is_per_micro_batch(direction_of(i))) events.push_back(i);
    }
    std::stable_partition(events.begin(), events.end(), [this](std::size_t event) {
      return is_forward_in_order(event);
    });
    return events;
  }

  CommunicatorRecord& communicator_of(GroupKind group) {
    std::vector<CommunicatorRecord>& all = profile_.program->communicators;
    if (all.size() <= static_cast<std::size_t>(group))
      all.resize(static_cast<std::size_t>(group) + 1);
    return all[static_cast<std::size_t>(group)];
  }

  void number(std::size_t event) {
    if (order_.events.kind[event] != static_cast<int64_t>(OrderKind::kRecord)) return;
    const auto next = static_cast<int64_t>(numbers_.size());
    numbers_[order_.events.item[event]] = next;
  }

  void add(std::size_t event) {
    const int64_t item = order_.events.item[event];
    switch (static_cast<OrderKind>(order_.events.kind[event])) {
      case OrderKind::kOperator:
        return add_work(event, records_.operators[index(item)]);
      case OrderKind::kCollective:
        return add_work(event, records_.collectives[index(item)]);
      case OrderKind::kRecord:
        return add_event(event, TraceEventKind::kRecord, numbers_.at(item));
      case OrderKind::kWait: {
        const bool is_of_before = item < 0;
        const auto found = numbers_.find(is_of_before ? item + order_.records : item);
        if (found == numbers_.end()) return;  // of another part of the iteration
        const int64_t number = found->second - (is_of_before ? trace_.records : 0);
        return add_event(event, TraceEventKind::kStreamWait, number);
      }
    }
  }

  void add_event(std::size_t event, TraceEventKind kind, int64_t item, double issue_seconds = 0) {
    trace_.events.kind.push_back(static_cast<int64_t>(kind));
    trace_.events.stream.push_back(order_.events.stream[event]);
    trace_.events.item.push_back(item);
    trace_.events.module.push_back(0);
    trace_.events.direction.push_back(order_.events.direction[event]);
    issue_seconds_.push_back(issue_seconds);
    of_event_.push_back({nullptr, event});
  }

  void add_work(std::size_t event, const std::optional<RecordPrice>& record) {
    if (!record) return;
    const auto [place, is_new] =
        works_.try_emplace(&*record, static_cast<int64_t>(trace_.works.size()));
    if (is_new) {
      // The other end of a message has come to it, too.
      const bool meets = record->group && !record->is_message;
      trace_.works.push_back({.kind = meets ? WorkKind::kCollective : WorkKind::kKernel,
                              .communicator = meets ? static_cast<int64_t>(*record->group) : -1});
      prices_.push_back(record->price);
    }
    add_event(event, TraceEventKind::kLaunch, place->second, record->issue_seconds);
    of_event_.back().price = &*record;
    if (record->host_waits) add_event(event, TraceEventKind::kHostWaitStream, 0, waits_.seconds);
  }

  const StepOrder& order_;
  const PricedRecords& records_;
  const int64_t chunk_;
  const HostWaits waits_;
  RankProfile profile_;
  Trace trace_;                         // until it is the profile's
  std::map<int64_t, int64_t> numbers_;  // of records, by those of the order
  std::map<const RecordPrice*, int64_t> works_;
  std::vector<WorkPrice> prices_;
  std::vector<double> issue_seconds_;
  struct OfEvent {
    const RecordPrice* price = nullptr;
    std::size_t place = 0;  ///< in the order
  };
  std::vector<OfEvent> of_event_;
};

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

double& seconds_of_axis(ExposedCommunication& communication, GroupKind group) {
  switch (group) {
    case GroupKind::kTensor:
    case GroupKind::kModel:
    case GroupKind::kWorld:
      return communication.tensor;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
      return communication.pipeline;
    case GroupKind::kData:
    case GroupKind::kDataContext:
    case GroupKind::kExpertData:
      return communication.data;
    case GroupKind::kContext:
    case GroupKind::kTensorContext:
      return communication.context;
    case GroupKind::kExpert:
    case GroupKind::kExpertTensor:
    case GroupKind::kExpertModel:
      return communication.expert;
  }
  throw std::logic_error("unknown group");
}

double PartTime::total_seconds() const { return compute_seconds + sum_of(communication_seconds); }

void add(ExposedCommunication& sum, const ExposedCommunication& part, double times) {
  sum.tensor += times * part.tensor;
  sum.pipeline += times * part.pipeline;
  sum.data += times * part.data;
  sum.context += times * part.context;
  sum.expert += times * part.expert;
}

void add(PartTime& sum, const PartTime& part, double times) {
  sum.compute_seconds += times * part.compute_seconds;
  add(sum.communication_seconds, part.communication_seconds, times);
}

double sum_of(const ExposedCommunication& c) {
  return c.tensor + c.pipeline + c.data + c.context + c.expert;
}

MicroBatchTime replay_micro_batch(const StepOrder& order,
                                  const PricedRecords& records,
                                  int64_t chunk,
                                  const HostWaits& waits) {
  const ChunkTrace trace(order, records, chunk, waits);
  const PlayedRank played = replay({trace.rank()}, LaunchCost()).front();
  const double period = played.iteration_seconds();
  std::vector<Interval> kernels;
  std::vector<Call> calls;
  double forward_end = 0, end = 0;
  for (const PlayedWork& work : played.works) {
    const RecordPrice& record = *trace.price_of(work.event);
    if (trace.is_on_main_stream(work.event)) {
      if (trace.is_forward(work.event)) forward_end = std::max(forward_end, work.end);
      end = std::max(end, work.end);
    }
    // The micro-batch before did the same one period earlier.
    for (const double shift : {0.0, period}) {
      const Interval ran{work.start - shift, work.end - shift};
      if (record.group) {
        calls.push_back({ran, *record.group});
      } else {
        kernels.push_back(ran);
      }
    }
  }
  const double begin = end - period;
  const Window window(std::move(kernels), std::move(calls));
  forward_end = std::max(forward_end, begin);
  const double lead = waits.before_step.value_or(played.host_seconds);
  const double alone = lead == 0 ? played.first_seconds
                                 : replay({trace.rank(lead)}, LaunchCost()).front().first_seconds;
  MicroBatchTime time{.forward = window.between(begin, forward_end),
                      .backward = window.between(forward_end, end),
                      .first_added_seconds = std::max(0.0, alone - period)};
  for (const PlayedWork& work : played.works) {
    const double part = trace.is_forward(work.event) ? begin : forward_end;
    time.works.push_back({.event = trace.place_in_order(work.event),
                          .begin = work.start - part,
                          .end = work.end - part});
  }
  return time;
}

}  // namespace estimator
