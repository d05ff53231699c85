#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/virtual_gpu/control.h"

extern "C" void __cudaRegisterFunction(
    void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
extern "C" void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);

namespace {

void my_kernel() {}

std::map<std::string, uint64_t> launches_by_name() {
  std::map<std::string, uint64_t> launches;
  onerank_virtual_gpu_visit_kernels(
      [](const char* name, uint64_t count, void* context) {
        (*static_cast<std::map<std::string, uint64_t>*>(context))[name] = count;
      },
      &launches);
  return launches;
}

const void* registered_kernel() {
  const void* function = reinterpret_cast<const void*>(&my_kernel);
  __cudaRegisterFunction(nullptr,
                         static_cast<const char*>(function),
                         nullptr,
                         "my_kernel",
                         -1,
                         nullptr,
                         nullptr,
                         nullptr,
                         nullptr,
                         nullptr);
  return function;
}

TEST(Kernel, LaunchesAreCountedByName) {
  const void* function = registered_kernel();
  const uint64_t before = onerank_virtual_gpu_kernel_launches();
  EXPECT_EQ(cudaLaunchKernel(function, 1, 256, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaLaunchCooperativeKernel(function, 1, 256, nullptr, 0, nullptr), cudaSuccess);
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 32;
  EXPECT_EQ(cudaLaunchKernelExC(&config, function, nullptr), cudaSuccess);
  EXPECT_EQ(onerank_virtual_gpu_kernel_launches() - before, 3u);
  EXPECT_EQ(launches_by_name()["my_kernel"], 3u);
}

TEST(Kernel, LaunchesThatADeviceRefusesAreErrorsAndNotCounted) {
  const void* function = registered_kernel();
  const uint64_t before = onerank_virtual_gpu_kernel_launches();
  const auto launch = [&](dim3 grid, dim3 block, size_t shared_bytes) {
    return cudaLaunchKernel(function, grid, block, nullptr, shared_bytes, nullptr);
  };
  EXPECT_EQ(launch(0, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 1025, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, dim3(32, 64), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 65536), 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 32, 232449), cudaErrorInvalidConfiguration);
  EXPECT_EQ(onerank_virtual_gpu_kernel_launches(), before);
  cudaGetLastError();
}

TEST(Kernel, OccupancyFollowsFromThreadsBlocksAndSharedMemory) {
  const auto blocks = [](int threads, size_t shared_bytes) {
    int count = -1;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, nullptr, threads, shared_bytes),
              cudaSuccess);
    return count;
  };
  EXPECT_EQ(blocks(1024, 0), 2);     // 2048 threads
  EXPECT_EQ(blocks(513, 0), 3);      // 17 warps, of 64
  EXPECT_EQ(blocks(32, 0), 32);      // blocks
  EXPECT_EQ(blocks(128, 99000), 2);  // 233472 / (99000 + 1024)
  EXPECT_EQ(blocks(128, 232449), 0);
}

TEST(Kernel, ReportsTheArchitectureOfTheCapability) {
  cudaFuncAttributes attributes;
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, registered_kernel()), cudaSuccess);
  EXPECT_EQ(attributes.binaryVersion, 90);
  EXPECT_EQ(attributes.ptxVersion, 90);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
}

TEST(Kernel, VariablesHaveOneAddressOnTheDevice) {
  static char variable[8];
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&address, variable), cudaErrorInvalidSymbol);
  cudaGetLastError();
  __cudaRegisterVar(nullptr, variable, nullptr, "variable", 0, sizeof variable, 0, 0);
  void* again = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&address, variable), cudaSuccess);
  EXPECT_EQ(cudaGetSymbolAddress(&again, variable), cudaSuccess);
  EXPECT_EQ(address, again);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, address), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
}

}  // namespace
