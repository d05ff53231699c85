#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "sim/virtual_gpu/control.h"

namespace {

constexpr size_t kDevicePage = 2 << 20;
constexpr size_t kCapacity = 1 << 30;

TEST(Memory, IsCountedInMemGetInfoAndInTheControlInterface) {
  size_t free_before = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
  EXPECT_EQ(total, kCapacity);
  const uint64_t used_before = onerank_virtual_gpu_used_bytes();

  void* address = nullptr;
  ASSERT_EQ(cudaMalloc(&address, kDevicePage + 1), cudaSuccess);
  size_t free_after = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
  EXPECT_EQ(free_before - free_after, 2 * kDevicePage);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes() - used_before, 2 * kDevicePage);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes(), used_before);
}

TEST(Memory, RunsOutAtTheCapacity) {
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, kCapacity + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&address, kCapacity), cudaSuccess);
  void* other = nullptr;
  EXPECT_EQ(cudaMalloc(&other, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
  cudaGetLastError();
}

TEST(Memory, IsFreedOnceAndOnlyIfItWasAllocated) {
  void* address = nullptr;
  ASSERT_EQ(cudaMalloc(&address, kDevicePage), cudaSuccess);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
  EXPECT_EQ(cudaFree(address), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  int on_the_stack = 0;
  EXPECT_EQ(cudaFree(&on_the_stack), cudaErrorInvalidValue);
  cudaGetLastError();
}

cudaPointerAttributes attributes_of(const void* address) {
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, address), cudaSuccess);
  return attributes;
}

TEST(Memory, OfADeviceOfTheHostAndOfNeitherIsToldApart) {
  void* on_device = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&on_device, kDevicePage), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const cudaPointerAttributes inside = attributes_of(static_cast<char*>(on_device) + 100);
  EXPECT_EQ(inside.type, cudaMemoryTypeDevice);
  EXPECT_EQ(inside.device, 1);
  EXPECT_EQ(cudaFree(on_device), cudaSuccess);
  EXPECT_EQ(attributes_of(on_device).type, cudaMemoryTypeUnregistered);

  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, 100, cudaHostAllocDefault), cudaSuccess);
  EXPECT_EQ(attributes_of(static_cast<char*>(pinned) + 99).type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes_of(static_cast<char*>(pinned) + 100).type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(Memory, ThatIsManagedIsUsedByTheHostAndDoesNotCountOnTheDevice) {
  const uint64_t used_before = onerank_virtual_gpu_used_bytes();
  void* address = nullptr;
  ASSERT_EQ(cudaMallocManaged(&address, 3 * kDevicePage, cudaMemAttachGlobal), cudaSuccess);
  static_cast<char*>(address)[kDevicePage] = 7;
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, address), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  unsigned is_managed = 0;
  EXPECT_EQ(
      cuPointerGetAttribute(
          &is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, reinterpret_cast<CUdeviceptr>(address)),
      CUDA_SUCCESS);
  EXPECT_EQ(is_managed, 1u);
  EXPECT_EQ(attributes.devicePointer, address);
  EXPECT_EQ(attributes.hostPointer, address);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes(), used_before);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
  EXPECT_EQ(cudaFree(address), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(Memory, OfTheHostMayBeLargerThanTheMachineUntilItIsWritten) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has no place for 4 TiB";
#endif
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, size_t{1} << 42, cudaHostAllocDefault), cudaSuccess);
  static_cast<char*>(pinned)[(size_t{1} << 42) - 1] = 1;
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(Memory, OfTheHostIsRegisteredOnceAndUnregisteredOnce) {
  std::vector<char> buffer(4096);
  EXPECT_EQ(attributes_of(buffer.data()).type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaHostRegister(buffer.data(), buffer.size(), 0), cudaSuccess);
  EXPECT_EQ(attributes_of(buffer.data()).type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaHostRegister(buffer.data(), 1, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(buffer.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(buffer.data()), cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
}

TEST(MemoryDeathTest, CapacityIsSetBeforeTheFirstAllocationAndReported) {
  const auto lift = [] {
    onerank_virtual_gpu_set_memory_bytes(uint64_t{1} << 50);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    void* address = nullptr;
    const bool fits = cudaMalloc(&address, size_t{1} << 49) == cudaSuccess;
    exit(total_bytes == size_t{1} << 50 && properties.totalGlobalMem == total_bytes && fits ? 0
                                                                                            : 1);
  };
  EXPECT_EXIT(lift(), testing::ExitedWithCode(0), "");
}

}  // namespace
