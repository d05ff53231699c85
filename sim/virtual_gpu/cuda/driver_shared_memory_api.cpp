// Memory that the ranks of a machine share: handles that travel between processes, and multicast
// objects, which reach all members of a group at once.
#include <cuda.h>

#include <cstdint>

#include "sim/virtual_gpu/cuda/success_if.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/device_attributes.h"
#include "sim/virtual_gpu/cudart/shared_descriptor.h"

using virtual_gpu::device;
using virtual_gpu::DeviceMemory;
using virtual_gpu::success_if;

namespace {

bool has_multicast(int ordinal) {
  return virtual_gpu::device_attribute(
             *device(), ordinal, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) == 1;
}

bool is_multicast(CUmemGenericAllocationHandle handle) {
  const auto memory = device()->memory.shared(handle);
  return memory && memory->is_multicast;
}

}  // namespace

CUresult cuMemExportToShareableHandle(void* shareable,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const auto memory = device()->memory.shared(handle);
  if (!memory) return CUDA_ERROR_INVALID_VALUE;
  const int descriptor = virtual_gpu::make_descriptor(*memory);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable) = descriptor;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* shareable,
                                        CUmemAllocationHandleType type) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const auto descriptor = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
  const auto memory = virtual_gpu::read_descriptor(descriptor);
  if (!memory) return CUDA_ERROR_INVALID_VALUE;
  *handle = device()->memory.adopt(virtual_gpu::current_device(), *memory);
  return CUDA_SUCCESS;
}

CUresult cuMulticastGetGranularity(size_t* bytes,
                                   const CUmulticastObjectProp*,
                                   CUmulticastGranularity_flags) {
  *bytes = DeviceMemory::kPageBytes;
  return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* properties) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const int ordinal = virtual_gpu::current_device();
  if (!has_multicast(ordinal)) return CUDA_ERROR_NOT_SUPPORTED;
  // Memory that other nodes can map needs a fabric, as in cuMemCreate().
  if (properties->handleTypes & CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_SUPPORTED;
  const bool is_whole_pages =
      properties->size > 0 && properties->size % DeviceMemory::kPageBytes == 0;
  if (!is_whole_pages || properties->numDevices == 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = device()->memory.adopt(ordinal, {.is_multicast = true, .bytes = properties->size});
  return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return success_if(is_multicast(handle));
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle,
                            size_t,
                            CUmemGenericAllocationHandle memory,
                            size_t,
                            size_t,
                            unsigned long long) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return success_if(is_multicast(handle) && device()->memory.shared(memory) &&
                    !is_multicast(memory));
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice, size_t, size_t) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return success_if(is_multicast(handle));
}
