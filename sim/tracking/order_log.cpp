#include "sim/tracking/order_log.h"

#include <optional>
#include <tuple>
#include <utility>

namespace sim {

using estimator::CollectiveCall;
using estimator::CollectiveKind;
using estimator::GroupKind;
using estimator::OrderKind;

OrderLog::Part OrderLog::part_of(const Place& place) {
  return {place.direction != estimator::Direction::kForward, place.chunk};
}

void OrderLog::add(
    OrderKind kind, int64_t stream, int64_t item, const Place& place, BegunWork begun) {
  events_.push_back({.kind = kind,
                     .stream = stream,
                     .item = item,
                     .allocated_bytes = allocated_bytes_,
                     .begun = std::move(begun),
                     .place = place});
}

void OrderLog::piece_began(int64_t piece, const Place& place) {
  add(OrderKind::kPiece, place.stream, piece, place);
}

void OrderLog::operator_counted(int64_t item, const Place& place, BegunWork begun) {
  add(OrderKind::kOperator, place.stream, item, place, std::move(begun));
}

/// Messages in both directions go at the same time.
int64_t OrderLog::stream_of(const CollectiveCall& call) {
  const CollectiveKind kind =
      estimator::is_message(call.kind) ? call.kind : CollectiveKind::kBarrier;
  const auto [place, is_new] = group_streams_.try_emplace({call.group, kind});
  if (is_new) place->second = new_stream();
  return place->second;
}

void OrderLog::collective_counted(int64_t item,
                                  const CollectiveCall& call,
                                  const Place& place,
                                  BegunWork begun) {
  if (!call.asynchronous) {
    return add(OrderKind::kCollective, place.stream, item, place, std::move(begun));
  }
  const int64_t stream = stream_of(call);
  wait(stream, record(place.stream, place), place);
  add(OrderKind::kCollective, stream, item, place, std::move(begun));
  last_calls_[call.group] = record(stream, place);
}

int64_t OrderLog::record(int64_t stream, const Place& place) {
  const auto number = static_cast<int64_t>(records_.size());
  const Part part = part_of(place);
  records_.push_back({.part = part,
                      .micro_batch = place.micro_batch,
                      .number = counts_[{part, place.micro_batch}]++});
  add(OrderKind::kRecord, stream, number, place);
  return number;
}

void OrderLog::wait(int64_t stream, int64_t record, const Place& place) {
  add(OrderKind::kWait, stream, record, place);
}

int64_t OrderLog::end_of_last_call(GroupKind group) const {
  const auto found = last_calls_.find(group);
  return found == last_calls_.end() ? kNoRecord : found->second;
}

std::map<OrderLog::Part, int64_t> OrderLog::last_micro_batches() const {
  std::map<Part, int64_t> last;
  for (const Event& event : events_) {
    if (event.place.micro_batch != estimator::kNoMicroBatch) {
      last[part_of(event.place)] = event.place.micro_batch;
    }
  }
  return last;
}

/// What happens once stands where it happened, also if that was in a micro-batch that is not kept:
/// at the same place of the one that is.
std::vector<OrderLog::Event> OrderLog::kept_events(const std::map<Part, int64_t>& last) const {
  using Position = std::pair<Part, int64_t>;  // among the events of a micro-batch
  std::map<std::pair<Part, int64_t>, int64_t> counts;
  std::map<Position, std::vector<Event>> moved;
  std::optional<Position> not_kept;  // that of the event before
  std::vector<Event> kept;
  for (const Event& event : events_) {
    if (event.place.micro_batch == estimator::kNoMicroBatch) {
      (not_kept ? moved[*not_kept] : kept).push_back(event);
      continue;
    }
    const Part part = part_of(event.place);
    const Position position{part, counts[{part, event.place.micro_batch}]++};
    not_kept.reset();
    if (event.place.micro_batch != last.at(part)) {
      not_kept = position;
      continue;
    }
    kept.push_back(event);
    const std::vector<Event>& once = moved[position];  // the last micro-batch comes last
    kept.insert(kept.end(), once.begin(), once.end());
  }
  return kept;
}

estimator::StepOrder OrderLog::order(const ModuleTree& modules) const {
  const std::map<Part, int64_t> last = last_micro_batches();
  const std::vector<Event> events = kept_events(last);
  // Numbers of the records that are kept, by their own, and by their part and place in it.
  std::map<int64_t, int64_t> kept;
  std::map<std::pair<Part, int64_t>, int64_t> of_last_micro_batch;
  for (const Event& event : events) {
    if (event.kind != OrderKind::kRecord) continue;
    const auto number = static_cast<int64_t>(kept.size());
    kept[event.item] = number;
    const Record& record = records_[static_cast<std::size_t>(event.item)];
    if (record.micro_batch != estimator::kNoMicroBatch) {
      of_last_micro_batch[{record.part, record.number}] = number;
    }
  }
  const auto records = static_cast<int64_t>(kept.size());
  const auto number_of = [&](int64_t index) -> std::optional<int64_t> {
    if (const auto own = kept.find(index); own != kept.end()) return own->second;
    const Record& record = records_[static_cast<std::size_t>(index)];
    const auto same = of_last_micro_batch.find({record.part, record.number});
    if (same == of_last_micro_batch.end()) return std::nullopt;
    return same->second - records;
  };
  estimator::StepOrder order{.records = records};
  std::map<ModuleId, int64_t> numbers;  // of modules
  for (const Event& event : events) {
    int64_t item = event.item;
    if (event.kind == OrderKind::kRecord || event.kind == OrderKind::kWait) {
      const std::optional<int64_t> number = number_of(item);
      if (!number) continue;
      item = *number;
    }
    const auto [module, is_new] =
        numbers.try_emplace(event.place.module, static_cast<int64_t>(order.modules.size()));
    if (is_new) order.modules.push_back(modules.module(event.place.module).path);
    order.events.add({.kind = event.kind,
                      .stream = event.stream,
                      .item = item,
                      .module = module->second,
                      .chunk = event.place.chunk,
                      .direction = event.place.direction,
                      .allocated_bytes = event.allocated_bytes,
                      .operators = event.begun.operators});
    for (const std::string& range : event.begun.ranges) {
      order.ranges.push_back({.event = std::ssize(order.events.kind) - 1, .name = range});
    }
  }
  for (const auto& [part, memory] : memory_) {
    const auto& [is_backward, chunk] = part;
    order.memory.push_back({.chunk = chunk,
                            .is_forward = !is_backward,
                            .begin_bytes = memory.begin_bytes,
                            .end_bytes = memory.end_bytes});
  }
  return order;
}

}  // namespace sim
