#include "sim/virtual_gpu/cudart/copy.h"

#include <cstring>
#include <utility>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {
namespace {

thread_local const int64_t* answer = nullptr;

/// Whether what was read is known; else zeros were, unless there is an answer.
bool read(void* destination, uint64_t source, size_t bytes) {
  if (shadow().read(source, destination, bytes)) return true;
  if (answer == nullptr || bytes > sizeof *answer) return false;
  std::memcpy(destination, answer, bytes);  // its lower bytes: x86 and Arm are little-endian
  return true;
}

uint64_t address_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

bool is_device(const void* address) {
  return device()->memory.device_at(address_of(address)).has_value();
}

}  // namespace

const int64_t* answer_unknown_reads_here(const int64_t* number) {
  return std::exchange(answer, number);
}

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
    case cudaMemcpyDeviceToHost:
      work_log().count_host_read(source, bytes, read(destination, address_of(source), bytes));
      break;
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
