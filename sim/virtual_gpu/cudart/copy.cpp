#include "sim/virtual_gpu/cudart/copy.h"

#include <cstring>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {
namespace {

uint64_t address_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

bool is_device(const void* address) {
  return device()->memory.device_at(address_of(address)).has_value();
}

}  // namespace

cudaMemcpyKind kind_of(cudaMemcpyKind asked, const void* destination, const void* source) {
  if (asked != cudaMemcpyDefault) return asked;
  if (is_device(destination)) {
    return is_device(source) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  }
  return is_device(source) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

void copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
  switch (kind_of(kind, destination, source)) {
    case cudaMemcpyHostToDevice:
      shadow().write(address_of(destination), source, bytes);
      break;
    case cudaMemcpyDeviceToDevice:
      shadow().copy(address_of(destination), address_of(source), bytes);
      break;
    case cudaMemcpyDeviceToHost: {
      const bool is_known = shadow().read(address_of(source), destination, bytes);
      work_log().count_host_read(bytes, is_known);
      break;
    }
    default:
      std::memmove(destination, source, bytes);
  }
}

void fill(void* destination, int value, size_t bytes) {
  if (is_device(destination)) {
    shadow().fill(address_of(destination), value, bytes);
  } else {
    std::memset(destination, value, bytes);
  }
}

}  // namespace virtual_gpu
