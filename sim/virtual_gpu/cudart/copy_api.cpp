#include <cuda_runtime_api.h>

#include "sim/virtual_gpu/cudart/copy.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"

using virtual_gpu::device;
using virtual_gpu::remember;

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  virtual_gpu::copy(destination, source, bytes, kind);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* destination, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(destination, source, bytes, kind);
}

cudaError_t cudaMemcpy2D(void* destination,
                         size_t destination_pitch,
                         const void* source,
                         size_t source_pitch,
                         size_t width_bytes,
                         size_t rows,
                         cudaMemcpyKind kind) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  for (size_t row = 0; row < rows; ++row) {
    virtual_gpu::copy(static_cast<char*>(destination) + row * destination_pitch,
                      static_cast<const char*>(source) + row * source_pitch,
                      width_bytes,
                      kind);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void* destination,
                              size_t destination_pitch,
                              const void* source,
                              size_t source_pitch,
                              size_t width_bytes,
                              size_t rows,
                              cudaMemcpyKind kind,
                              cudaStream_t) {
  return cudaMemcpy2D(
      destination, destination_pitch, source, source_pitch, width_bytes, rows, kind);
}

cudaError_t cudaMemcpyPeerAsync(
    void* destination, int, const void* source, int, size_t bytes, cudaStream_t) {
  return cudaMemcpy(destination, source, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeer(void* destination, int, const void* source, int, size_t bytes) {
  return cudaMemcpy(destination, source, bytes, cudaMemcpyDeviceToDevice);
}

// Variables of kernels are device memory: what is written to them vanishes.
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaSuccess;
}

cudaError_t cudaMemset(void* destination, int value, size_t bytes) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  virtual_gpu::fill(destination, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* destination, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(destination, value, bytes);
}
