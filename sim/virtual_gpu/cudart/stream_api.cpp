#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::device;
using virtual_gpu::remember;

namespace {

// A smaller number is a higher priority. Capabilities 7.0 and newer have these six.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

/// Two small numbers stand for default streams (cudaStreamLegacy, cudaStreamPerThread).
bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

}  // namespace

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  static std::atomic<unsigned long long> next_id{3};  // after the default streams
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  *stream = new CUstream_st{flags,
                            std::clamp(priority, kGreatestPriority, kLeastPriority),
                            virtual_gpu::current_device(),
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
  *ordinal = is_default(stream) ? virtual_gpu::current_device() : stream->device;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  *id = is_default(stream) ? reinterpret_cast<uintptr_t>(stream) : stream->id;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

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

// Beginning a capture is refused, so no stream is ever capturing.
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id,
                                     cudaGraph_t*,
                                     const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**,
                                     size_t* dependencies) {
  *status = cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 0;
  if (dependencies != nullptr) *dependencies = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}
