#include "sim/virtual_gpu/cudart/work_log.h"

#include <limits>
#include <utility>

namespace virtual_gpu {

void WorkLog::set_event_sink(std::function<void(const Event&)> sink) {
  // Another thread may hold the sink before this one, so that is never destroyed.
  event_sink_ = new std::function<void(const Event&)>(std::move(sink));
}

void WorkLog::set_wants_arguments(std::function<bool()> wants) {
  wants_arguments_ = new std::function<bool()>(std::move(wants));  // as above
}

bool WorkLog::wants_arguments() const {
  const auto* const wants = wants_arguments_.load();
  return wants != nullptr && (*wants)();
}

void WorkLog::set_timer(Timer seconds_between) {
  timer_ = new Timer(std::move(seconds_between));  // as above
}

double WorkLog::seconds_between(uint64_t start, uint64_t end) const {
  const auto* const timer = timer_.load();
  return timer == nullptr ? std::numeric_limits<double>::quiet_NaN() : (*timer)(start, end);
}

void WorkLog::tell(const Event& event) const {
  if (const auto* const sink = event_sink_.load()) (*sink)(event);
}

void WorkLog::count_gemm(const GemmShape& shape) {
  std::lock_guard lock(mutex_);
  ++gemms_[shape];
}

void WorkLog::visit_gemms(
    const std::function<void(const GemmShape&, uint64_t count)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const auto& [shape, count] : gemms_) visit(shape, count);
}

void WorkLog::count_host_read(const void* address, size_t bytes, bool is_known) {
  ++host_reads_;
  if (is_known) return;
  InventionSink sink;
  {
    std::lock_guard lock(mutex_);
    sink = invention_sink_;
  }
  if (sink) sink(address, bytes);
}

void WorkLog::set_invention_sink(InventionSink sink) {
  std::lock_guard lock(mutex_);
  invention_sink_ = std::move(sink);
}

}  // namespace virtual_gpu
