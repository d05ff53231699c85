#include "sim/virtual_gpu/cudart/device_attributes.h"

#include <cuda.h>

#include <cstring>
#include <limits>

namespace virtual_gpu {

std::optional<int> device_attribute(const Device& device, int ordinal, int attribute) {
  const CapabilityFacts& facts = device.facts;
  const bool is_hopper_or_newer = facts.major >= 9;
  const struct {
    int attribute;
    int value;
  } table[] = {
      // The limits of a launch: CUDA C++ Programming Guide, "Compute Capabilities".
      {cudaDevAttrMaxThreadsPerBlock, kThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, 1024},
      {cudaDevAttrMaxBlockDimY, 1024},
      {cudaDevAttrMaxBlockDimZ, 64},
      {cudaDevAttrMaxGridDimX, std::numeric_limits<int>::max()},
      {cudaDevAttrMaxGridDimY, 65535},
      {cudaDevAttrMaxGridDimZ, 65535},
      {cudaDevAttrWarpSize, kWarpThreads},
      {cudaDevAttrClusterLaunch, is_hopper_or_newer},
      {cudaDevAttrCooperativeLaunch, 1},
      {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, is_hopper_or_newer},

      // What a multiprocessor holds.
      {cudaDevAttrMultiProcessorCount, device.spec.multiprocessors},
      {cudaDevAttrMaxThreadsPerMultiProcessor, facts.threads_per_multiprocessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, facts.blocks_per_multiprocessor},
      {cudaDevAttrMaxSharedMemoryPerBlock, kSharedBytesPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, facts.shared_bytes_per_block_optin},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, facts.shared_bytes_per_multiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, facts.reserved_shared_bytes_per_block},
      {cudaDevAttrMaxRegistersPerBlock, kRegistersPerMultiprocessor},
      {cudaDevAttrMaxRegistersPerMultiprocessor, kRegistersPerMultiprocessor},
      {cudaDevAttrTotalConstantMemory, 64 * 1024},
      {cudaDevAttrL2CacheSize, device.spec.l2_bytes},
      {cudaDevAttrGlobalL1CacheSupported, 1},
      {cudaDevAttrLocalL1CacheSupported, 1},

      // What it is and where.
      {cudaDevAttrComputeCapabilityMajor, facts.major},
      {cudaDevAttrComputeCapabilityMinor, facts.minor},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
      {cudaDevAttrPciDomainId, 0},
      {cudaDevAttrPciBusId, ordinal},
      {cudaDevAttrPciDeviceId, 0},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrTccDriver, 0},
      {cudaDevAttrIsMultiGpuBoard, 0},
      {cudaDevAttrEccEnabled, 1},

      // An H100's: Triton asks for them and divides by them. No time is made of them.
      {cudaDevAttrClockRate, 1'980'000},
      {cudaDevAttrMemoryClockRate, 2'619'000},
      {cudaDevAttrGlobalMemoryBusWidth, 5120},

      // Streams and copies.
      {cudaDevAttrGpuOverlap, 1},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrMaxPitch, std::numeric_limits<int>::max()},
      {cudaDevAttrTextureAlignment, 512},
      {cudaDevAttrSurfaceAlignment, 512},
      {cudaDevAttrTexturePitchAlignment, 32},

      // Kinds of memory.
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrHostRegisterSupported, 1},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrConcurrentManagedAccess, 1},
      {cudaDevAttrDirectManagedMemAccessFromHost, 0},
      // NVSwitches reduce and multicast from Hopper's on.
      {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, is_hopper_or_newer && device.spec.nvlinks > 0},

      // Kinds of memory whose functions the virtual GPU refuses.
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrMemoryPoolsSupported, 0},
      {cudaDevAttrGPUDirectRDMASupported, 0},
      {cudaDevAttrIpcEventSupport, 0},
      {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
  };
  for (const auto& known : table) {
    if (known.attribute == attribute) return known.value;
  }
  return std::nullopt;
}

cudaDeviceProp device_properties(const Device& device, int ordinal) {
  const auto attribute = [&](int number) {
    return device_attribute(device, ordinal, number).value();
  };
  cudaDeviceProp properties;
  std::memset(&properties, 0, sizeof properties);
  device.spec.name.copy(properties.name, sizeof properties.name - 1);
  properties.uuid.bytes[0] = static_cast<char>(ordinal + 1);
  properties.totalGlobalMem = device.memory.capacity_bytes();
  properties.major = device.facts.major;
  properties.minor = device.facts.minor;
  properties.multiProcessorCount = device.spec.multiprocessors;
  properties.warpSize = kWarpThreads;

  properties.maxThreadsPerBlock = kThreadsPerBlock;
  properties.maxThreadsPerMultiProcessor = device.facts.threads_per_multiprocessor;
  properties.maxBlocksPerMultiProcessor = device.facts.blocks_per_multiprocessor;
  properties.maxThreadsDim[0] = attribute(cudaDevAttrMaxBlockDimX);
  properties.maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimY);
  properties.maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ);
  properties.maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
  properties.maxGridSize[1] = attribute(cudaDevAttrMaxGridDimY);
  properties.maxGridSize[2] = attribute(cudaDevAttrMaxGridDimZ);
  properties.sharedMemPerBlock = kSharedBytesPerBlock;
  properties.sharedMemPerBlockOptin = device.facts.shared_bytes_per_block_optin;
  properties.sharedMemPerMultiprocessor = device.facts.shared_bytes_per_multiprocessor;
  properties.reservedSharedMemPerBlock = device.facts.reserved_shared_bytes_per_block;
  properties.regsPerBlock = kRegistersPerMultiprocessor;
  properties.regsPerMultiprocessor = kRegistersPerMultiprocessor;
  properties.totalConstMem = attribute(cudaDevAttrTotalConstantMemory);
  properties.l2CacheSize = device.spec.l2_bytes;
  properties.globalL1CacheSupported = 1;
  properties.localL1CacheSupported = 1;
  properties.cooperativeLaunch = 1;
  properties.clusterLaunch = attribute(cudaDevAttrClusterLaunch);

  properties.pciBusID = attribute(cudaDevAttrPciBusId);
  properties.ECCEnabled = attribute(cudaDevAttrEccEnabled);
  properties.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  properties.concurrentKernels = 1;
  properties.streamPrioritiesSupported = 1;
  properties.memPitch = attribute(cudaDevAttrMaxPitch);
  properties.textureAlignment = attribute(cudaDevAttrTextureAlignment);
  properties.texturePitchAlignment = attribute(cudaDevAttrTexturePitchAlignment);
  properties.surfaceAlignment = attribute(cudaDevAttrSurfaceAlignment);
  properties.unifiedAddressing = 1;
  properties.canMapHostMemory = 1;
  properties.hostRegisterSupported = 1;
  properties.canUseHostPointerForRegisteredMem = 1;
  return properties;
}

}  // namespace virtual_gpu
