#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/sim/virtual_gpu/threads.h"

namespace {

TEST(ThreadsOfCuda, UseOneDeviceEachWithItsOwnStream) {
  constexpr int kRounds = 200;
  at_once([](int thread) {
    EXPECT_EQ(cudaSetDevice(thread % 2), cudaSuccess);
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, "virtual"), CUDA_SUCCESS);
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(cudaMemcpyAsync(memory, &round, sizeof round, cudaMemcpyHostToDevice, stream),
                cudaSuccess);
      CUfunction function = nullptr;
      EXPECT_EQ(cuModuleGetFunction(&function, module, round % 2 == 0 ? "even" : "odd"),
                CUDA_SUCCESS);
      EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr),
                CUDA_SUCCESS);
      EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaSuccess);
      EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
      EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    }
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

}  // namespace
