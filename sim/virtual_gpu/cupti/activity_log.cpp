#include "sim/virtual_gpu/cupti/activity_log.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

namespace virtual_gpu {
namespace {

constexpr uint32_t kContext = 1;

// CUpti_runtime_api_trace_cbid of the calls.
constexpr uint32_t kLaunchKernel = 211, kMemcpyAsync = 41, kMemsetAsync = 51;

// CUpti_ActivityMemcpyKind by cudaMemcpyKind, and the CUpti_ActivityMemoryKind of both sides.
struct CopyKinds {
  uint8_t copy, source, destination;
};
constexpr uint8_t kHost = 1, kDevice = 3;
constexpr CopyKinds kCopies[] = {
    {9, kHost, kHost}, {1, kHost, kDevice}, {2, kDevice, kHost}, {8, kDevice, kDevice}};

thread_local std::map<uint32_t, std::vector<uint64_t>> ids;  // by kind, the last one is on top

uint64_t nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

uint32_t function_of(onerank_cupti_kind kind) {
  if (kind == ONERANK_CUPTI_KERNEL) return kLaunchKernel;
  return kind == ONERANK_CUPTI_COPY ? kMemcpyAsync : kMemsetAsync;
}

/// All activities have these.
template <class Activity>
Activity activity_of(const onerank_cupti_work& work) {
  Activity activity;
  activity.start = work.start_nanoseconds;
  activity.end = work.end_nanoseconds;
  activity.device = static_cast<uint32_t>(work.device);
  activity.context = kContext;
  activity.stream = static_cast<uint32_t>(work.stream);
  activity.correlation = work.call;
  return activity;
}

}  // namespace

ActivityLog::Moment ActivityLog::moment() const {
  const uint64_t now = nanoseconds();
  return {.nanoseconds = now, .told = now_ == nullptr ? now : now_()};
}

void ActivityLog::set_buffers(RequestBuffer request, CompleteBuffer complete) {
  const std::lock_guard lock(mutex_);
  request_ = request;
  complete_ = complete;
}

void ActivityLog::set_clock(Now now) {
  const std::lock_guard lock(mutex_);
  now_ = now;
  first_ = moment();
}

void ActivityLog::push_id(uint32_t kind, uint64_t id) { ids[kind].push_back(id); }

uint64_t ActivityLog::pop_id(uint32_t kind) {
  std::vector<uint64_t>& pushed = ids[kind];
  if (pushed.empty()) return 0;
  const uint64_t last = pushed.back();
  pushed.pop_back();
  return last;
}

uint32_t ActivityLog::called(onerank_cupti_kind kind) {
  const uint32_t call = ++calls_;
  const uint64_t now = nanoseconds();
  const std::lock_guard lock(mutex_);
  if (buffer_.memory == nullptr) buffer_ = requested_buffer();
  for (const auto& [external_kind, pushed] : ids) {
    if (pushed.empty()) continue;
    activities_.emplace_back(CorrelationActivity{
        .external_kind = external_kind, .external_id = pushed.back(), .correlation = call});
  }
  activities_.emplace_back(CallActivity{.function = function_of(kind),
                                        .start = now,
                                        .end = now,
                                        .process = static_cast<uint32_t>(getpid()),
                                        .thread = static_cast<uint32_t>(gettid()),
                                        .correlation = call});
  return call;
}

void ActivityLog::add_kernel(const onerank_cupti_work& work) {
  auto activity = activity_of<KernelActivity>(work);
  activity.name = names_.insert(work.name).first->c_str();
  activities_.emplace_back(activity);
}

void ActivityLog::add_copy(const onerank_cupti_work& work) {
  auto activity = activity_of<CopyActivity>(work);
  const CopyKinds& kinds = kCopies[work.direction];
  activity.bytes = work.bytes;
  activity.copy_kind = kinds.copy;
  activity.source_kind = kinds.source;
  activity.destination_kind = kinds.destination;
  activities_.emplace_back(activity);
}

void ActivityLog::add_fill(const onerank_cupti_work& work) {
  auto activity = activity_of<FillActivity>(work);
  activity.bytes = work.bytes;
  activity.memory_kind = kDevice;
  activities_.emplace_back(activity);
}

void ActivityLog::ran(const onerank_cupti_work& work) {
  const std::lock_guard lock(mutex_);
  if (work.kind == ONERANK_CUPTI_KERNEL) add_kernel(work);
  if (work.kind == ONERANK_CUPTI_COPY) add_copy(work);
  if (work.kind == ONERANK_CUPTI_FILL) add_fill(work);
}

uint64_t ActivityLog::told_time(uint64_t nanoseconds, const Moment& last) const {
  if (now_ == nullptr || last.nanoseconds == first_.nanoseconds) return nanoseconds;
  const double rate = static_cast<double>(last.told - first_.told) /
                      static_cast<double>(last.nanoseconds - first_.nanoseconds);
  const auto passed = static_cast<double>(static_cast<int64_t>(nanoseconds - first_.nanoseconds));
  return first_.told + static_cast<uint64_t>(static_cast<int64_t>(passed * rate));
}

void ActivityLog::put(const Activity& activity, const Moment& last, uint8_t* record) const {
  std::memset(record, 0, kRecordBytes);
  std::visit(
      [&](auto told) {
        if constexpr (requires { told.start; }) {
          told.start = told_time(told.start, last);
          told.end = told_time(told.end, last);
        }
        if constexpr (requires { told.completed; }) told.completed = told.end;
        std::memcpy(record, &told, sizeof told);
      },
      activity);
}

ActivityLog::Buffer ActivityLog::requested_buffer() const {
  Buffer buffer;
  size_t most_records = 0;
  if (request_ != nullptr) request_(&buffer.memory, &buffer.bytes, &most_records);
  return buffer;
}

void ActivityLog::give_back(const Buffer& buffer,
                            std::vector<Activity>& activities,
                            const Moment& last) const {
  const size_t count = std::min(activities.size(), buffer.bytes / kRecordBytes);
  for (size_t i = 0; i < count; ++i) put(activities[i], last, buffer.memory + i * kRecordBytes);
  complete_(nullptr, 0, buffer.memory, buffer.bytes, count * kRecordBytes);
  activities.erase(activities.begin(), activities.begin() + static_cast<std::ptrdiff_t>(count));
}

void ActivityLog::flush() {
  std::vector<Activity> activities;
  Buffer buffer;
  Moment last;
  {
    const std::lock_guard lock(mutex_);
    activities = std::exchange(activities_, {});
    buffer = std::exchange(buffer_, {});
    last = moment();
  }
  while (buffer.memory != nullptr) {
    give_back(buffer, activities, last);
    buffer = activities.empty() ? Buffer{} : requested_buffer();
  }
}

}  // namespace virtual_gpu
