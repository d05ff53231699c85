#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/event.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::device;
using virtual_gpu::is_default;
using virtual_gpu::remember;
using virtual_gpu::sequence_of;

namespace {

// A smaller number is a higher priority. Capabilities 7.0 and newer have these six.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

}  // namespace

namespace virtual_gpu {

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

int device_of(cudaStream_t stream) {
  return is_default(stream) ? current_device() : stream->device;
}

int sequence_of(cudaStream_t stream) {
  return is_default(stream) ? current_device() : stream->sequence;
}

void host_waits_for_stream(int sequence) {
  work_log().tell({.kind = ONERANK_VIRTUAL_GPU_HOST_WAIT, .stream = sequence});
  device()->timeline.host_waits_for(sequence);
}

void host_waits_for_device() {
  work_log().tell({.kind = ONERANK_VIRTUAL_GPU_HOST_WAIT, .stream = -1});
  device()->timeline.host_waits_for_device(current_device());
}

void add_work(cudaStream_t stream) {
  if (device() != nullptr) device()->timeline.add_work(sequence_of(stream));
}

}  // namespace virtual_gpu

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  static std::atomic<unsigned long long> next_id{3};  // after the default streams
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  const int ordinal = virtual_gpu::current_device();
  const bool waits_for_default_stream = (flags & cudaStreamNonBlocking) == 0;
  *stream = new CUstream_st{flags,
                            std::clamp(priority, kGreatestPriority, kLeastPriority),
                            ordinal,
                            device()->timeline.open(ordinal, waits_for_default_stream),
                            next_id++};
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, kLeastPriority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (is_default(stream)) return remember(cudaErrorInvalidResourceHandle);
  device()->timeline.close(stream->sequence);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = is_default(stream) ? kLeastPriority : stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = is_default(stream) ? cudaStreamDefault : stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* ordinal) {
  *ordinal = virtual_gpu::device_of(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  *id = is_default(stream) ? reinterpret_cast<uintptr_t>(stream) : stream->id;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  const bool is_done = device()->timeline.is_done(sequence_of(stream));
  return remember(is_done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  if (virtual_gpu::capture().id_of(stream) != 0) {
    virtual_gpu::capture().invalidate();
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  virtual_gpu::host_waits_for_stream(sequence_of(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (event->capture != 0) {
    virtual_gpu::capture().join(stream);
    virtual_gpu::capture().keep(
        {.event = {.kind = ONERANK_VIRTUAL_GPU_STREAM_WAIT, .record = event->point}}, stream);
    return cudaSuccess;
  }
  if (event->record != 0) {
    if (virtual_gpu::capture().id_of(stream) != 0) {
      virtual_gpu::capture().invalidate();
      return remember(cudaErrorStreamCaptureIsolation);
    }
    virtual_gpu::work_log().tell({.kind = ONERANK_VIRTUAL_GPU_STREAM_WAIT,
                                  .stream = sequence_of(stream),
                                  .record = event->record});
  }
  device()->timeline.wait_for_event(sequence_of(stream), event->before);
  return cudaSuccess;
}

// Whatever a host function waits for is done.
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* argument) {
  function(argument);
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                  cudaStreamCallback_t callback,
                                  void* argument,
                                  unsigned) {
  callback(stream, cudaSuccess, argument);
  return cudaSuccess;
}
