#include <cuda_runtime_api.h>

#include <cstring>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::current_device;
using virtual_gpu::device;
using virtual_gpu::host_memory;
using virtual_gpu::managed_memory;
using virtual_gpu::remember;

cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const auto allocated = device()->memory.allocate(current_device(), bytes);
  if (!allocated) return remember(cudaErrorMemoryAllocation);
  *address = reinterpret_cast<void*>(*allocated);
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  if (address == nullptr) return cudaSuccess;
  virtual_gpu::host_waits_for_device();
  const bool freed =
      device()->memory.free(reinterpret_cast<uint64_t>(address)) || managed_memory().free(address);
  return remember(freed ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned) {
  if (bytes == 0) return remember(cudaErrorInvalidValue);
  *address = managed_memory().allocate(bytes);
  return remember(*address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  *total_bytes = device()->memory.capacity_bytes();
  *free_bytes = *total_bytes - device()->memory.used_bytes(current_device());
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  *address = bytes > 0 ? host_memory().allocate(bytes) : nullptr;
  return remember(bytes > 0 && *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* address) {
  if (address == nullptr || host_memory().free(address)) return cudaSuccess;
  return remember(cudaErrorInvalidValue);
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned) {
  if (address == nullptr || bytes == 0) return remember(cudaErrorInvalidValue);
  const bool is_new = host_memory().register_range(address, bytes);
  return remember(is_new ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* address) {
  const bool was_known = host_memory().unregister_range(address);
  return remember(was_known ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned) {
  if (!host_memory().contains(address)) return remember(cudaErrorInvalidValue);
  *device_address = address;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  std::memset(attributes, 0, sizeof *attributes);
  void* const pointer = const_cast<void*>(address);
  const auto ordinal = device()->memory.device_at(reinterpret_cast<uint64_t>(address));
  if (ordinal) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = *ordinal;
    attributes->devicePointer = pointer;
  } else if (const bool is_managed = managed_memory().contains(address);
             is_managed || host_memory().contains(address)) {
    attributes->type = is_managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
    attributes->device = current_device();
    attributes->devicePointer = pointer;
    attributes->hostPointer = pointer;
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = pointer;
  }
  return cudaSuccess;
}
