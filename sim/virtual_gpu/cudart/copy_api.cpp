#include <cuda_runtime_api.h>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/copy.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::device;
using virtual_gpu::remember;
using virtual_gpu::sequence_of;

namespace {

/// A copy of `rows` rows. "API synchronization behavior" of the CUDA runtime's manual says when the
/// host waits: a call without a stream unless it stays on the device, and one with a stream if it
/// writes host memory that is not page-locked.
struct Copy {
  void* destination;
  size_t destination_pitch;
  const void* source;
  size_t source_pitch;
  size_t width_bytes;
  size_t rows;
  cudaMemcpyKind kind;
};

bool is_pageable(const Copy& copy) {
  const bool has_host_memory =
      copy.kind == cudaMemcpyHostToDevice || copy.kind == cudaMemcpyDeviceToHost;
  const bool is_read = copy.kind == cudaMemcpyDeviceToHost;
  return has_host_memory &&
         !virtual_gpu::host_memory().contains(is_read ? copy.destination : copy.source);
}

bool is_of_others(const Copy& copy) {
  const auto is_adopted = [](const void* address) {
    return device()->memory.is_adopted(reinterpret_cast<uint64_t>(address));
  };
  return is_adopted(copy.destination) || is_adopted(copy.source);
}

void copy_rows(const Copy& copy) {
  for (size_t row = 0; row < copy.rows; ++row) {
    virtual_gpu::copy(static_cast<char*>(copy.destination) + row * copy.destination_pitch,
                      static_cast<const char*>(copy.source) + row * copy.source_pitch,
                      copy.width_bytes,
                      copy.kind);
  }
}

cudaError_t run(const Copy& copy, cudaStream_t stream, bool is_blocking) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  if (is_blocking && virtual_gpu::capture().id_of(stream) != 0) {
    virtual_gpu::capture().invalidate();
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  const auto effect = [copy, stream, is_blocking] {
    if (is_blocking) virtual_gpu::host_waits_for_stream(sequence_of(stream));
    copy_rows(copy);
  };
  virtual_gpu::run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_COPY,
                                   .bytes = copy.width_bytes * copy.rows,
                                   .direction = copy.kind,
                                   .is_of_others = is_of_others(copy),
                                   .is_pageable = is_pageable(copy)},
                         .gemm = {},
                         .effect = effect},
                        stream);
  return cudaSuccess;
}

cudaError_t run_blocking(Copy copy) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  copy.kind = virtual_gpu::kind_of(copy.kind, copy.destination, copy.source);
  return run(copy, nullptr, copy.kind != cudaMemcpyDeviceToDevice);
}

cudaError_t run_on(cudaStream_t stream, Copy copy) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  copy.kind = virtual_gpu::kind_of(copy.kind, copy.destination, copy.source);
  const bool is_read = copy.kind == cudaMemcpyDeviceToHost;
  return run(copy, stream, is_read && is_pageable(copy));
}

}  // namespace

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return run_blocking({destination, bytes, source, bytes, bytes, 1, kind});
}

cudaError_t cudaMemcpyAsync(
    void* destination, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return run_on(stream, {destination, bytes, source, bytes, bytes, 1, kind});
}

cudaError_t cudaMemcpy2D(void* destination,
                         size_t destination_pitch,
                         const void* source,
                         size_t source_pitch,
                         size_t width_bytes,
                         size_t rows,
                         cudaMemcpyKind kind) {
  return run_blocking(
      {destination, destination_pitch, source, source_pitch, width_bytes, rows, kind});
}

cudaError_t cudaMemcpy2DAsync(void* destination,
                              size_t destination_pitch,
                              const void* source,
                              size_t source_pitch,
                              size_t width_bytes,
                              size_t rows,
                              cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return run_on(stream,
                {destination, destination_pitch, source, source_pitch, width_bytes, rows, kind});
}

cudaError_t cudaMemcpyPeerAsync(
    void* destination, int, const void* source, int, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpyPeer(void* destination, int, const void* source, int, size_t bytes) {
  return cudaMemcpy(destination, source, bytes, cudaMemcpyDeviceToDevice);
}

// Variables of kernels are device memory: what is written to them vanishes.
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaSuccess;
}

cudaError_t cudaMemset(void* destination, int value, size_t bytes) {
  return cudaMemsetAsync(destination, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* destination, int value, size_t bytes, cudaStream_t stream) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  virtual_gpu::run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_FILL, .bytes = bytes},
                         .gemm = {},
                         .effect = [=] { virtual_gpu::fill(destination, value, bytes); }},
                        stream);
  return cudaSuccess;
}
