#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sim/virtual_gpu/cuda/success_if.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/gpu_memory.h"

using virtual_gpu::device;
using virtual_gpu::DeviceMemory;
using virtual_gpu::success_if;

namespace {

constexpr uint64_t kPageBytes = DeviceMemory::kPageBytes;

bool is_whole_pages(uint64_t bytes) { return bytes > 0 && bytes % kPageBytes == 0; }

bool is_device_memory(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 &&
         location.id < device()->spec.device_count;
}

}  // namespace

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return static_cast<CUresult>(cudaMemGetInfo(free_bytes, total_bytes));
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* pointer = nullptr;
  const cudaError_t error = cudaMalloc(&pointer, bytes);
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  return static_cast<CUresult>(error);
}

CUresult cuMemFree(CUdeviceptr address) {
  return static_cast<CUresult>(cudaFree(reinterpret_cast<void*>(address)));
}

// Virtual memory management, as PyTorch's expandable segments use it.

CUresult cuMemGetAllocationGranularity(size_t* bytes,
                                       const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kPageBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(
    CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const bool is_power_of_two = (alignment & (alignment - 1)) == 0;
  if (!is_whole_pages(bytes) || !is_power_of_two) return CUDA_ERROR_INVALID_VALUE;
  *address = device()->memory.reserve_addresses(bytes, alignment);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return success_if(device()->memory.release_addresses(address, bytes));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle,
                     size_t bytes,
                     const CUmemAllocationProp* properties,
                     unsigned long long) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  // Memory that other nodes can map needs a fabric; callers then ask for a file descriptor instead.
  if (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_SUPPORTED;
  if (!is_device_memory(properties->location)) return CUDA_ERROR_NOT_SUPPORTED;
  if (!is_whole_pages(bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto created = device()->memory.create(properties->location.id, bytes);
  if (!created) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = *created;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return success_if(device()->memory.release(handle));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto retained = device()->memory.retain(reinterpret_cast<uint64_t>(address));
  if (!retained) return CUDA_ERROR_INVALID_VALUE;
  *handle = *retained;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address,
                  size_t bytes,
                  size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (offset != 0) return CUDA_ERROR_NOT_SUPPORTED;  // as the driver still does
  return success_if(is_whole_pages(bytes) && device()->memory.map(address, bytes, handle));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return success_if(device()->memory.unmap(address, bytes));
}

// Nothing is ever read or written: any access is fine.
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  cudaPointerAttributes facts;
  const cudaError_t error =
      cudaPointerGetAttributes(&facts, reinterpret_cast<const void*>(address));
  if (error != cudaSuccess) return static_cast<CUresult>(error);
  if (facts.type == cudaMemoryTypeUnregistered) return CUDA_ERROR_INVALID_VALUE;
  const bool is_device = facts.type == cudaMemoryTypeDevice;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(value) = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = facts.device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = facts.type == cudaMemoryTypeManaged;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}
