#include "sim/virtual_gpu/cudart/copy.h"

#include <cstring>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {
namespace {

bool is_device(const void* address) {
  return device()->memory.device_at(reinterpret_cast<uint64_t>(address)).has_value();
}

cudaMemcpyKind kind_of(const void* destination, const void* source) {
  if (is_device(destination)) {
    return is_device(source) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  }
  return is_device(source) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

}  // namespace

void copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) kind = kind_of(destination, source);
  if (kind == cudaMemcpyDeviceToHost) {
    std::memset(destination, 0, bytes);
    work_log().count_host_read();
  }
  if (kind == cudaMemcpyHostToHost) std::memmove(destination, source, bytes);
}

void fill(void* destination, int value, size_t bytes) {
  if (!is_device(destination)) std::memset(destination, value, bytes);
}

}  // namespace virtual_gpu
