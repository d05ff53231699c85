#include "estimator/step/shown_work.h"

#include <algorithm>

#include "estimator/plan/drawn_experts.h"

namespace estimator {
namespace {

/// What is allocated at each of the part's works, above what was allocated as it began.
std::vector<int64_t> added_memory(const OrderEvents& events,
                                  const PartMemory& part,
                                  const std::vector<MicroBatchWork>& works) {
  std::vector<int64_t> added;
  for (const MicroBatchWork& work : works) {
    const auto direction = static_cast<Direction>(events.direction[work.event]);
    const bool is_of_part =
        is_per_micro_batch(direction) && (direction == Direction::kForward) == part.is_forward;
    if (is_of_part) added.push_back(events.allocated_bytes[work.event] - part.begin_bytes);
  }
  return added;
}

std::vector<int64_t> largest_of_spans(const std::vector<int64_t>& values) {
  constexpr std::size_t kSpans = 6;
  const std::size_t spans = std::min(kSpans, values.size());
  const auto begin_of = [&](std::size_t span) {
    return values.begin() + static_cast<std::ptrdiff_t>(span * values.size() / spans);
  };
  std::vector<int64_t> largest;
  for (std::size_t i = 0; i < spans; ++i) {
    largest.push_back(*std::max_element(begin_of(i), begin_of(i + 1)));
  }
  return largest;
}

}  // namespace

bool is_dispatch(const OperatorRecord& kernel) {
  return kernel.name == kDispatchKernel || kernel.name == kCombineKernel;
}

WorkClass class_of(const OperatorRecord& kernel) {
  if (is_dispatch(kernel)) return WorkClass::kCommunication;
  if (is_attention(kernel)) return WorkClass::kAttention;
  return is_matmul(kernel) ? WorkClass::kProducts : WorkClass::kMemoryBound;
}

ShownWork shown_work(const RankProfile& profile,
                     const StepOrder& order,
                     const MicroBatchWork& work) {
  const OrderEvents& events = order.events;
  const auto item = static_cast<std::size_t>(events.item[work.event]);
  ShownWork shown{.direction = static_cast<Direction>(events.direction[work.event]),
                  .module = order.modules[static_cast<std::size_t>(events.module[work.event])],
                  .stream = events.stream[work.event],
                  .begin_seconds = work.begin,
                  .end_seconds = work.end};
  if (events.kind[work.event] == static_cast<int64_t>(OrderKind::kCollective)) {
    const CollectiveCall& call = profile.collectives[item].call;
    shown.name = to_string(call.kind);
    shown.category = to_string(WorkClass::kCommunication);
    shown.group = call.group;
    shown.bytes = call.bytes;
  } else {
    const OperatorRecord& record = profile.operators[item];
    shown.name = record.name;
    shown.category = to_string(class_of(record));
    shown.bytes = static_cast<int64_t>(record.bytes);
  }
  return shown;
}

PartMemoryChange memory_change(const OrderEvents& events,
                               const PartMemory& part,
                               const std::vector<MicroBatchWork>& works) {
  PartMemoryChange change;
  change.largest_bytes = largest_of_spans(added_memory(events, part, works));
  change.end_bytes = part.end_bytes - part.begin_bytes;
  return change;
}

}  // namespace estimator
