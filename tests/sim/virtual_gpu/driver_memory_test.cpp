#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "sim/virtual_gpu/control.h"

/// The driver functions of expandable segments, found by name as PyTorch finds them.
namespace {

constexpr size_t kPage = 2 << 20;

template <typename Function>
Function* find(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result),
            cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSuccess) << name;
  return reinterpret_cast<Function*>(function);
}

CUmemAllocationProp memory_of_device_0(CUmemAllocationHandleType handle_type) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = handle_type;
  return properties;
}

TEST(DriverMemory, IsCountedFromCreateToReleaseAndUnmap) {
  const uint64_t before = onerank_virtual_gpu_used_bytes();
  const auto properties = memory_of_device_0(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(
      find<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&address, 10 * kPage, 0, 0, 0),
      CUDA_SUCCESS);
  ASSERT_EQ(find<decltype(cuMemCreate)>("cuMemCreate")(&handle, 2 * kPage, &properties, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(find<decltype(cuMemMap)>("cuMemMap")(address, 2 * kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes() - before, 2 * kPage);

  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(address)), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);

  EXPECT_EQ(find<decltype(cuMemUnmap)>("cuMemUnmap")(address, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(find<decltype(cuMemRelease)>("cuMemRelease")(handle), CUDA_SUCCESS);
  EXPECT_EQ(find<decltype(cuMemAddressFree)>("cuMemAddressFree")(address, 10 * kPage),
            CUDA_SUCCESS);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes(), before);
}

TEST(DriverMemory, RunsOutAtTheCapacity) {
  const auto properties = memory_of_device_0(CU_MEM_HANDLE_TYPE_NONE);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, (size_t{1} << 30) + kPage, &properties, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(DriverMemory, OfAFabricIsNotSupported) {
  const auto properties = memory_of_device_0(CU_MEM_HANDLE_TYPE_FABRIC);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kPage, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(DriverEntryPoint, FindsTheNewestVersionOfAName) {
  size_t bytes = 0;
  EXPECT_EQ(find<CUresult(size_t*, CUdevice)>("cuDeviceTotalMem")(&bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(bytes, size_t{1} << 30);
}

#if CUDA_VERSION >= 12050
TEST(DriverEntryPoint, FindsTheVersionThatTheProgramKnows) {
  const auto found = [](unsigned cuda_version) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
    EXPECT_EQ(
        cudaGetDriverEntryPointByVersion("cuStreamGetCtx", &function, cuda_version, 0, &result),
        cudaSuccess);
    return function;
  };
  EXPECT_NE(found(12040), found(12050));
}
#endif

TEST(DriverEntryPoint, SaysThatANameIsUnknown) {
  void* function = &function;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, 0, &result),
            cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
}

TEST(DriverContext, IsActive) {
  unsigned flags = 1;
  int is_active = 0;
  EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &is_active), CUDA_SUCCESS);
  EXPECT_EQ(is_active, 1);
}

TEST(DriverContext, OfAPeerCanBeUsedOnce) {
  CUcontext peer = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&peer, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(peer, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(cuCtxDisablePeerAccess(peer), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT);
  int can = 0, rank = -1;
  EXPECT_EQ(cuDeviceCanAccessPeer(&can, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cuDeviceGetP2PAttribute(&rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1),
            CUDA_SUCCESS);
  EXPECT_EQ(rank, 0);
}

TEST(DriverContext, AStreamHasThatOfItsDevice) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  CUcontext of_stream = nullptr, current = nullptr;
  EXPECT_EQ(cuStreamGetCtx(stream, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_NE(of_stream, nullptr);
  EXPECT_EQ(of_stream, current);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
