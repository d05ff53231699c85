#include "sim/exec/trace/device_trace.h"

#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>

#include "sim/virtual_gpu/find_control.h"

namespace sim {
namespace {

using estimator::TraceWork;
using estimator::WorkKind;
using Seconds = std::chrono::duration<double>;

onerank_cupti_kind kind_of(WorkKind kind) {
  if (kind == WorkKind::kCopy) return ONERANK_CUPTI_COPY;
  return kind == WorkKind::kFill ? ONERANK_CUPTI_FILL : ONERANK_CUPTI_KERNEL;
}

/// Of a library's kernel: what it does.
std::string name_of(const TraceWork& work) {
  if (work.kind == WorkKind::kProduct) {
    return fmt::format("{} {} {}", work.name, fmt::join(work.shapes.front(), "x"), work.dtype);
  }
  const bool is_of_nccl = work.kind == WorkKind::kCollective || work.kind == WorkKind::kMessages;
  return is_of_nccl ? "ncclDevKernel_" + work.name : work.name;
}

/// A number of cudaMemcpyKind.
int direction_of(std::string_view name) {
  if (name == estimator::kHostToDevice) return 1;
  return name == estimator::kDeviceToHost ? 2 : 3;
}

}  // namespace

DeviceTrace::DeviceTrace()
    : is_tracing_(ONERANK_FIND_CONTROL(onerank_cupti_is_tracing)),
      called_(ONERANK_FIND_CONTROL(onerank_cupti_called)),
      ran_(ONERANK_FIND_CONTROL(onerank_cupti_ran)) {}

uint32_t DeviceTrace::called(WorkKind kind) const { return is_on() ? called_(kind_of(kind)) : 0; }

void DeviceTrace::ran(const TraceWork& work, uint32_t call, int stream, double seconds) {
  if (call == 0) return;
  const DeviceClock::Span span = clock().run(stream, seconds);
  const std::string name = name_of(work);
  const auto nanoseconds = [&](double time) {
    const auto since_start = std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(time));
    const auto since_epoch = start_.time_since_epoch() + since_start;
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
  };
  const onerank_cupti_work told{.kind = kind_of(work.kind),
                                .call = call,
                                .name = name.c_str(),
                                .device = c10::cuda::current_device(),
                                .stream = stream,
                                .start_nanoseconds = nanoseconds(span.start),
                                .end_nanoseconds = nanoseconds(span.end),
                                .bytes = static_cast<uint64_t>(work.bytes),
                                .direction = direction_of(work.name)};
  ran_(&told);
}

DeviceClock& DeviceTrace::clock() {
  clock_.host_is_at(now());
  return clock_;
}

void DeviceTrace::catch_up() const {
  std::this_thread::sleep_for(Seconds(std::max(0.0, clock_.host() - now())));
}

double DeviceTrace::now() const {
  return Seconds(std::chrono::system_clock::now() - start_).count();
}

}  // namespace sim
