#include <cuda_runtime_api.h>

#include <atomic>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"

using virtual_gpu::remember;

/// An event: it has happened as soon as it is recorded.
struct CUevent_st {
  bool has_time;
  std::atomic<bool> is_recorded = false;
};

namespace {

// Kernels take no time, but programs that tune themselves divide by the time between two events.
constexpr float kElapsedMilliseconds = 1e-3f;

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (virtual_gpu::device() == nullptr) return remember(cudaErrorInitializationError);
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t, unsigned) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  event->is_recorded = true;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return remember(event != nullptr ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (const cudaEvent_t event : {start, end}) {
    const bool is_timed = event != nullptr && event->has_time && event->is_recorded;
    if (!is_timed) return remember(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = kElapsedMilliseconds;
  return cudaSuccess;
}
