// Memory that processes share, and multicast objects, as PyTorch's symmetric memory uses them.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "sim/virtual_gpu/control.h"

namespace {

constexpr size_t kSharedPage = 2 << 20;
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemGenericAllocationHandle create(size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = kDescriptor;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
  return handle;
}

CUmemGenericAllocationHandle create_multicast(size_t bytes) {
  CUmulticastObjectProp properties{};
  properties.numDevices = 8;
  properties.size = bytes;
  properties.handleTypes = kDescriptor;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMulticastCreate(&handle, &properties), CUDA_SUCCESS);
  return handle;
}

CUmemGenericAllocationHandle import(int descriptor) {
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(intptr_t{descriptor}), kDescriptor),
            CUDA_SUCCESS);
  close(descriptor);
  return handle;
}

int export_handle(CUmemGenericAllocationHandle handle) {
  int descriptor = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&descriptor, handle, kDescriptor, 0), CUDA_SUCCESS);
  return descriptor;
}

CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, bytes, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(address, bytes, 0, handle, 0), CUDA_SUCCESS);
  return address;
}

void release(CUmemGenericAllocationHandle handle, CUdeviceptr address, size_t bytes) {
  EXPECT_EQ(cuMemUnmap(address, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(address, bytes), CUDA_SUCCESS);
}

bool is_of_others(CUdeviceptr address) {
  return onerank_virtual_gpu_is_of_others(reinterpret_cast<void*>(address)) != 0;
}

TEST(SharedMemory, OfOthersTakesAddressesAndNoMemory) {
  const uint64_t before = onerank_virtual_gpu_used_bytes();
  const auto own = create(2 * kSharedPage);
  const auto others = import(export_handle(own));
  const CUdeviceptr own_address = map(own, 2 * kSharedPage),
                    others_address = map(others, 2 * kSharedPage);
  EXPECT_NE(own, others);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes() - before, 2 * kSharedPage) << "this rank's own";
  EXPECT_FALSE(is_of_others(own_address));
  EXPECT_TRUE(is_of_others(others_address + kSharedPage));
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(others_address)),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);

  release(others, others_address, 2 * kSharedPage);
  EXPECT_FALSE(is_of_others(others_address)) << "it is no longer mapped";
  EXPECT_EQ(onerank_virtual_gpu_used_bytes() - before, 2 * kSharedPage);
  release(own, own_address, 2 * kSharedPage);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes(), before);
}

TEST(SharedMemory, IsImportedFromNothingElse) {
  CUmemGenericAllocationHandle handle = 0;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(cuMemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(intptr_t{ends[0]}), kDescriptor),
            CUDA_ERROR_INVALID_VALUE);
  close(ends[0]);
  close(ends[1]);
  int descriptor = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&descriptor, 12345, kDescriptor, 0),
            CUDA_ERROR_INVALID_VALUE);
}

TEST(SharedMemory, DoesNotTravelByFabric) {
  const auto own = create(kSharedPage);
  CUmemFabricHandle fabric;
  EXPECT_EQ(cuMemExportToShareableHandle(&fabric, own, CU_MEM_HANDLE_TYPE_FABRIC, 0),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemRelease(own), CUDA_SUCCESS);
}

TEST(Multicast, BindsMemoryOfADeviceAndTakesNone) {
  const auto own = create(kSharedPage);
  const uint64_t before = onerank_virtual_gpu_used_bytes();
  const auto first = create_multicast(kSharedPage);
  const auto of_another = import(onerank_virtual_gpu_multicast_of_others());
  for (const auto multicast : {first, of_another}) {
    EXPECT_EQ(cuMulticastAddDevice(multicast, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMulticastBindMem(multicast, 0, own, 0, kSharedPage, 0), CUDA_SUCCESS);
    const CUdeviceptr address = map(multicast, kSharedPage);
    EXPECT_TRUE(is_of_others(address));
    EXPECT_EQ(onerank_virtual_gpu_used_bytes(), before);
    EXPECT_EQ(cuMulticastUnbind(multicast, 0, 0, kSharedPage), CUDA_SUCCESS);
    release(multicast, address, kSharedPage);
  }
  EXPECT_EQ(cuMulticastAddDevice(own, 0), CUDA_ERROR_INVALID_VALUE) << "it is plain memory";
  EXPECT_EQ(cuMemRelease(own), CUDA_SUCCESS);
}

TEST(Multicast, IsThereWhereNvSwitchesAre) {
  int has_multicast = 0;
  EXPECT_EQ(cuDeviceGetAttribute(&has_multicast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(has_multicast, 1);
}

TEST(SharedMemory, TellsOfCopiesToAndFromOthers) {
  static std::pair<int, int> copies;  // of others, and all
  onerank_virtual_gpu_set_event_sink(
      [](const onerank_virtual_gpu_event* event, void*) {
        if (event->kind != ONERANK_VIRTUAL_GPU_COPY) return;
        copies.first += event->is_of_others;
        ++copies.second;
      },
      nullptr);
  const auto own = create(kSharedPage);
  const auto others = import(export_handle(own));
  const CUdeviceptr own_address = map(own, kSharedPage), others_address = map(others, kSharedPage);
  auto* const here = reinterpret_cast<void*>(own_address);
  auto* const there = reinterpret_cast<void*>(others_address);
  EXPECT_EQ(cudaMemcpyAsync(here, there, 1024, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(there, here, 1024, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(here, here, 1024, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(copies, (std::pair{2, 3}));
  onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
  release(others, others_address, kSharedPage);
  release(own, own_address, kSharedPage);
}

}  // namespace
