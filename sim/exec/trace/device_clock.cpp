#include "sim/exec/trace/device_clock.h"

#include <algorithm>

namespace sim {

void DeviceClock::host_is_at(double time) { host_ = std::max(host_, time); }

DeviceClock::Span DeviceClock::run(int stream, double seconds) {
  double& end = streams_[stream];
  const double start = std::max(end, host_);
  end = start + seconds;
  return {.start = start, .end = end};
}

void DeviceClock::record(int stream, uint64_t record, bool is_asked_for) {
  constexpr std::size_t kKept = 4096;  // more than one step of FSDP2 on 80 layers makes
  const double time = run(stream, 0).end;
  last_records_[record] = time;
  if (last_records_.size() > kKept) last_records_.erase(last_records_.begin());
  if (is_asked_for) asked_for_[record] = time;
}

std::optional<double> DeviceClock::time_of(uint64_t record) const {
  const auto found = last_records_.find(record);
  return found == last_records_.end() ? std::nullopt : std::optional(found->second);
}

void DeviceClock::stream_waits(int stream, uint64_t record) {
  double& end = streams_[stream];
  end = std::max(end, time_of(record).value_or(0));
}

void DeviceClock::host_waits_for_record(uint64_t record) {
  host_is_at(time_of(record).value_or(0));
}

void DeviceClock::host_waits_for_device() {
  for (const auto& [stream, end] : streams_) host_is_at(end);
}

std::optional<double> DeviceClock::seconds_between(uint64_t start, uint64_t end) const {
  const auto from = asked_for_.find(start), to = asked_for_.find(end);
  if (from == asked_for_.end() || to == asked_for_.end()) return std::nullopt;
  const double seconds = to->second - from->second;
  return end > start ? std::max(seconds, kResolutionSeconds) : seconds;
}

}  // namespace sim
