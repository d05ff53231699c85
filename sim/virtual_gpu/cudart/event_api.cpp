#include <cuda_runtime_api.h>

#include <cmath>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/event.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::device;
using virtual_gpu::remember;
using virtual_gpu::sequence_of;

namespace {

// Where the host program has no clock. Programs that tune themselves divide by the time between two
// events, and repeat a kernel until some tenths of a second would have passed: Triton's do_bench
// fills 0.125 s by the time of five launches, which are then some hundreds.
constexpr double kUnknownMilliseconds = 1;

double milliseconds_between(const CUevent_st& start, const CUevent_st& end) {
  const double seconds = virtual_gpu::work_log().seconds_between(start.record, end.record);
  return std::isnan(seconds) ? kUnknownMilliseconds : 1e3 * seconds;
}

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

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  event->capture = virtual_gpu::capture().id_of(stream);
  if (event->capture != 0) {
    event->point = virtual_gpu::run_record({}, stream);
    return cudaSuccess;
  }
  device()->timeline.record(sequence_of(stream), event->before);
  event->is_recorded = true;
  event->record = virtual_gpu::run_record({.event = {.is_timed = event->has_time}}, stream);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  return remember(device()->timeline.is_done(event->before) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (event->record != 0) {
    virtual_gpu::work_log().tell(
        {.kind = ONERANK_VIRTUAL_GPU_HOST_WAIT, .stream = -1, .record = event->record});
  }
  device()->timeline.host_waits_for(event->before);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (const cudaEvent_t event : {start, end}) {
    const bool is_timed = event != nullptr && event->has_time && event->is_recorded;
    if (!is_timed) return remember(cudaErrorInvalidResourceHandle);
  }
  for (const cudaEvent_t event : {start, end}) {
    if (!device()->timeline.is_done(event->before)) return remember(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>(milliseconds_between(*start, *end));
  return cudaSuccess;
}
