#include "estimator/step/lap_trace.h"

namespace estimator {
namespace {

std::size_t place(int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

LapTrace::LapTrace(const StepOrder& order, const PricedRecords& records, const HostWaits& waits)
    : order_(order),
      records_(records),
      waits_(waits),
      number_of_operator_(2 * records.operators.size(), -1),
      number_of_collective_(2 * records.collectives.size(), -1) {
  std::vector<CommunicatorRecord>& communicators = profile_.program.emplace().communicators;
  for (const auto& [kind, name] : enum_names(GroupKind{})) {
    communicators.resize(std::max(communicators.size(), static_cast<std::size_t>(kind) + 1));
    communicators[static_cast<std::size_t>(kind)].name = name;
  }
  profile_.trace.emplace().modules = {""};
  for (std::size_t i = 0; i < order.events.kind.size(); ++i) {
    const bool begins_piece = static_cast<OrderKind>(order.events.kind[i]) == OrderKind::kPiece;
    if (begins_piece) computing_streams_.insert(order.events.stream[i]);
  }
  price_ranges();
}

/// Those without a price cost nothing.
void LapTrace::price_ranges() {
  for (const TraceRange& range : order_.ranges) {
    const auto known = waits_.range_seconds.find(range.name);
    if (known == waits_.range_seconds.end()) continue;
    range_seconds_[place(range.event)] += known->second;
  }
}

void LapTrace::add_micro_batch(const LapEvents& forward, const LapEvents& backward) {
  begin_lap();
  add_part(forward);
  add_part(backward);
  if (waits_.at_ends_of_micro_batches) wait_after(backward);
}

void LapTrace::add_combined(const LapEvents& events) {
  begin_lap();
  add_part(events);
}

void LapTrace::add_end_of(std::size_t lap, const LapEvents& events) {
  begin_lap();
  first_record_ = static_cast<int64_t>(lap) * order_.records;
  for (const std::size_t event : events) add(event);
}

/// Each lap has records of its own.
void LapTrace::begin_lap() {
  first_record_ = static_cast<int64_t>(laps_) * order_.records;
  ++laps_;
  profile_.trace->records = static_cast<int64_t>(laps_) * order_.records;
  recorded_.resize(place(profile_.trace->records));
}

void LapTrace::add_part(const LapEvents& events) {
  for (const std::size_t event : events) add(event);
  if (waits_.at_ends_of_parts) wait_after(events);
}

void LapTrace::wait_after(const LapEvents& events) {
  if (events.empty()) return;
  add_event(events.back(), TraceEventKind::kHostWaitDevice, 0, waits_.seconds);
}

void LapTrace::add(std::size_t event) {
  const int64_t record = first_record_ + order_.events.item[event];
  switch (const auto kind = static_cast<OrderKind>(order_.events.kind[event])) {
    case OrderKind::kOperator:
    case OrderKind::kCollective:
      return add_work(event, kind);
    case OrderKind::kRecord:
      recorded_[place(record)] = true;
      return add_event(event, TraceEventKind::kRecord, record);
    case OrderKind::kWait:
      // Those of the lap before are below 0; what was before the first lap has happened.
      if (record >= 0 && !recorded_[place(record)]) return;  // of another part of the step
      return add_event(event, TraceEventKind::kStreamWait, record);
    case OrderKind::kPiece:
      return;
  }
}

void LapTrace::add_event(std::size_t event,
                         TraceEventKind kind,
                         int64_t item,
                         double issue_seconds) {
  TraceEvents& events = profile_.trace->events;
  events.kind.push_back(static_cast<int64_t>(kind));
  events.stream.push_back(order_.events.stream[event]);
  events.item.push_back(item);
  events.module.push_back(0);
  issue_seconds_.push_back(issue_seconds);
  of_event_.push_back({.place = event, .lap = laps_ - 1});
}

void LapTrace::add_work(std::size_t event, OrderKind kind) {
  const std::size_t item = place(order_.events.item[event]);
  const auto& record = records_.of(kind)[item];
  if (!record) return;
  const int64_t graph = records_.graphs.graph_of(event);
  const bool is_in_graph = graph != GraphLaunches::kNone;
  add_event(event,
            TraceEventKind::kLaunch,
            work_number({.kind = kind, .item = item, .is_in_graph = is_in_graph}, *record),
            issue_seconds(event, *record, graph));
  if (record->host_waits) add_event(event, TraceEventKind::kHostWaitStream, 0, waits_.seconds);
}

int64_t LapTrace::work_number(Work work, const RecordPrice& record) {
  std::vector<int64_t>& numbers =
      work.kind == OrderKind::kOperator ? number_of_operator_ : number_of_collective_;
  int64_t& number = numbers[2 * work.item + (work.is_in_graph ? 1 : 0)];
  if (number >= 0) return number;
  // The other end of a message has come to it, too.
  const bool meets = record.group && !record.is_message;
  profile_.trace->works.push_back(
      {.kind = meets ? WorkKind::kCollective : WorkKind::kKernel,
       .communicator = meets ? static_cast<int64_t>(*record.group) : -1});
  if (record.group) work.axis_group = record.axis_group;
  works_.push_back(work);
  return number = std::ssize(works_) - 1;
}

/// The host issues all of a graph with its first kernel, and none of its operators.
double LapTrace::issue_seconds(std::size_t event, const RecordPrice& record, int64_t graph) {
  const bool is_in_graph = graph != GraphLaunches::kNone;
  const bool is_launched = is_in_graph && graph == last_graph_;
  last_graph_ = graph;
  if (is_launched) return 0;
  return record.issue_seconds +
         (is_in_graph ? records_.graphs.launch_seconds : dispatch_seconds(event));
}

double LapTrace::dispatch_seconds(std::size_t event) const {
  const double operators =
      static_cast<double>(order_.events.operators[event]) * waits_.operator_seconds;
  if (range_seconds_.empty()) return operators;
  const auto ranges = range_seconds_.find(event);
  return operators + (ranges == range_seconds_.end() ? 0 : ranges->second);
}

void LapTrace::end_here() {
  wanted_laps_ = laps_;
  last_event_ = std::ssize(of_event_) - 1;
}

double LapTrace::host_seconds() const {
  double seconds = 0;
  for (std::size_t i = 0; i < of_event_.size() && of_event_[i].lap == 0; ++i) {
    seconds += issue_seconds_[i];
  }
  return seconds;
}

std::vector<WorkPrice> LapTrace::prices(const PricedRecords& records) const {
  std::vector<WorkPrice> prices;
  prices.reserve(works_.size());
  for (const Work& work : works_) {
    WorkPrice& price = prices.emplace_back(records.of(work.kind)[work.item]->price);
    if (!work.is_in_graph || work.axis_group) continue;
    price.seconds = std::max(0.0, price.seconds - records.graphs.saved_seconds);
  }
  return prices;
}

const LapTrace::Work& LapTrace::work_of(const PlayedWork& played) const {
  return works_[place(profile_.trace->events.item[place(played.event)])];
}

LapTrace::OfWork LapTrace::of(const PlayedWork& work) const {
  const OfEvent& of = of_event_[place(work.event)];
  return {.place = of.place,
          .lap = of.lap,
          .direction = static_cast<Direction>(order_.events.direction[of.place]),
          .axis_group = work_of(work).axis_group};
}

PlayedLaps LapTrace::play(const std::vector<WorkPrice>& prices, double host_lead_seconds) const {
  std::vector<ReplayRank> ranks(1);
  ranks.front() = {.profile = &profile_,
                   .prices = prices,
                   .issue_seconds = issue_seconds_,
                   .host_lead_seconds = host_lead_seconds,
                   .iterations = 1,
                   .last_event = last_event_};
  PlayedLaps played{.laps = std::vector<PlayedLap>(std::min(laps_, wanted_laps_)),
                    .works = std::move(replay(ranks, LaunchCost()).front().works)};
  for (const PlayedWork& work : played.works) {
    const OfWork is = of(work);
    if (is.lap >= played.laps.size()) continue;
    PlayedLap& lap = played.laps[is.lap];
    if (!is_per_micro_batch(is.direction)) {
      lap.once_end = std::max(lap.once_end, work.end);
      if (!is.axis_group) continue;
      const auto number = place(profile_.trace->events.item[place(work.event)]);
      lap.call_seconds += work.end - work.start;
      lap.multiprocessor_seconds +=
          (work.end - work.start) * prices[number].occupancy.multiprocessors;
      continue;
    }
    lap.end = std::max(lap.end, work.end);
    if (!computing_streams_.contains(order_.events.stream[is.place])) continue;
    lap.main_end = std::max(lap.main_end, work.end);
    if (is.direction == Direction::kForward) lap.forward_end = std::max(lap.forward_end, work.end);
  }
  return played;
}

}  // namespace estimator
