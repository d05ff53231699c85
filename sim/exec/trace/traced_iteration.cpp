#include "sim/exec/trace/traced_iteration.h"

#include <utility>

#include "estimator/base/fields.h"

namespace sim {
namespace {

using estimator::Trace;
using estimator::TraceEventKind;
using estimator::TraceWork;

bool names_record(TraceEventKind kind) {
  return kind == TraceEventKind::kRecord || kind == TraceEventKind::kStreamWait ||
         kind == TraceEventKind::kHostWaitRecord;
}

void append(const TracedEvent& event, int64_t module, estimator::TraceEvents& events) {
  events.kind.push_back(static_cast<int64_t>(event.kind));
  events.stream.push_back(event.stream);
  events.item.push_back(event.item);
  events.module.push_back(module);
  events.direction.push_back(static_cast<int64_t>(event.place.direction));
  events.issue.push_back(static_cast<int64_t>(event.issue));
  events.operators.push_back(event.operators);
}

}  // namespace

void TracedIteration::start(int64_t number, int64_t last_record) {
  number_ = number;
  is_recording_ = true;
  if (events_.empty()) first_record_ = last_record + 1;
}

void TracedIteration::stop(int64_t last_record) {
  if (!is_recording_) return;
  is_recording_ = false;
  is_complete_ = true;
  end_record_ = last_record + 1;
}

void TracedIteration::forget() {
  const int64_t times = forgotten_ + 1;
  *this = TracedIteration();
  forgotten_ = times;
}

void TracedIteration::is_work(std::size_t place, const TraceWork& work) {
  events_[place].item = number_of(work);
}

int64_t TracedIteration::number_of(const TraceWork& work) {
  const auto [place, is_new] =
      numbers_.try_emplace(estimator::to_json(work).dump(), static_cast<int64_t>(works_.size()));
  if (is_new) works_.push_back(work);
  return place->second;
}

bool TracedIteration::add_to_group(const onerank_nccl_call& call, const TraceWork& work) {
  const auto [place, is_new] = groups_.try_emplace(NcclGroup::key_of(call, work));
  Group& group = place->second;
  if (is_new) {
    group = {.event = events_.size(), .calls = {call, work}};
  } else {
    group.calls.add(call, work);
  }
  return is_new;
}

void TracedIteration::model_reads(uint64_t model, int64_t integers) {
  const auto number =
      models_.try_emplace(model, static_cast<int64_t>(models_.size())).first->second;
  ++inputs_[{number, integers}];
}

void TracedIteration::evaluation_started() {
  const auto here = static_cast<int64_t>(events_.size());
  evaluations_.push_back({.begin = here, .end = here});
  is_evaluating_ = true;
}

void TracedIteration::evaluation_finished() {
  if (std::exchange(is_evaluating_, false)) {
    evaluations_.back().end = static_cast<int64_t>(events_.size());
  }
}

void TracedIteration::range_started(std::string_view name) {
  ranges_.push_back({.event = static_cast<int64_t>(events_.size()), .name = std::string(name)});
}

/// By the virtual GPU's numbers: those of the trace from 0 on, and below 0 the same ones of the
/// iteration before, which are taken to have had the same order.
std::map<int64_t, int64_t> TracedIteration::places_of_records() const {
  std::map<int64_t, int64_t> places;
  for (const TracedEvent& event : events_) {
    if (event.kind != TraceEventKind::kRecord) continue;
    places.try_emplace(event.item, static_cast<int64_t>(places.size()));
  }
  const auto own = static_cast<int64_t>(places.size());
  const int64_t of_iteration = end_record_ - first_record_;
  std::map<int64_t, int64_t> before;
  for (const auto& [number, place] : places) before[number - of_iteration] = place - own;
  places.merge(before);
  return places;
}

/// Groups that may have grown, and operators that have not ended.
void TracedIteration::number_last_works() {
  for (const auto& [key, group] : groups_) is_work(group.event, group.calls.work());
  for (TracedEvent& event : events_) {
    if (event.kind != TraceEventKind::kLaunch || event.item >= 0) continue;
    event.item = number_of({.kind = estimator::WorkKind::kKernel,
                            .name = "a kernel of an operator that did not end",
                            .bytes_source = estimator::BytesSource::kNothing});
  }
}

std::optional<Trace> TracedIteration::trace(const RunTracker& tracker) const {
  if (!is_complete_) return std::nullopt;
  TracedIteration whole = *this;
  whole.number_last_works();
  return whole.whole_trace(tracker);
}

/// Ranges behind the last event hold nothing.
void TracedIteration::place_calls(const std::vector<int64_t>& places, Trace& trace) const {
  const auto place_of = [&](int64_t event) { return places[static_cast<std::size_t>(event)]; };
  for (const estimator::TraceRange& range : ranges_) {
    if (range.event == static_cast<int64_t>(events_.size())) continue;
    trace.ranges.push_back({.event = place_of(range.event), .name = range.name});
  }
  for (const estimator::TraceCall& call : evaluations_) {
    trace.evaluations.push_back({.begin = place_of(call.begin), .end = place_of(call.end)});
  }
}

Trace TracedIteration::whole_trace(const RunTracker& tracker) const {
  Trace trace{
      .iteration = number_, .differentiates_backward = differentiates_backward_, .works = works_};
  const std::map<int64_t, int64_t> records = places_of_records();
  std::map<ModuleId, int64_t> modules;
  std::vector<int64_t> places;  // in the trace, by places in `events_`
  for (TracedEvent event : events_) {
    places.push_back(static_cast<int64_t>(trace.events.kind.size()));
    if (names_record(event.kind)) {
      const auto place = records.find(event.item);
      if (place == records.end()) continue;  // it is older, and over
      event.item = place->second;
    }
    if (event.kind == TraceEventKind::kRecord) ++trace.records;
    const auto [module, is_new] =
        modules.try_emplace(event.place.module, static_cast<int64_t>(trace.modules.size()));
    if (is_new) trace.modules.push_back(module_path(tracker, event.place.module));
    append(event, module->second, trace.events);
  }
  places.push_back(static_cast<int64_t>(trace.events.kind.size()));
  place_calls(places, trace);
  for (const auto& [input, calls] : inputs_) {
    trace.inputs.push_back({.model = input.first, .integers = input.second, .calls = calls});
  }
  return trace;
}

}  // namespace sim
