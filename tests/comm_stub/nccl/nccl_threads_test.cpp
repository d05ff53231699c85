// Threads of one program that call NCCL at once, each on communicators of its own as NCCL wants it.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>

#include "comm_stub/nccl/nccl_control.h"
#include "comm_stub/nccl/nccl_types.h"
#include "tests/sim/virtual_gpu/threads.h"

extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommSplit(ncclComm_t, int color, int key, ncclComm_t*, ncclConfig_t*);
ncclResult_t ncclCommCount(ncclComm_t, int*);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclAllReduce(
    const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
}

namespace {

TEST(NcclThreads, AreEachHeardWithEveryCall) {
  constexpr int kRounds = 100;
  std::atomic<int> calls = 0;
  onerank_nccl_set_host(
      [](const onerank_nccl_call*, void* count) { ++*static_cast<std::atomic<int>*>(count); },
      nullptr,
      [](void*) { return 4; },
      &calls);
  at_once([](int) {
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
    ncclUniqueId id{};
    ncclComm_t world = nullptr;
    ncclComm_t part = nullptr;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclCommInitRank(&world, 8, id, 3), ncclSuccess);
    ASSERT_EQ(ncclCommSplit(world, 0, 0, &part, nullptr), ncclSuccess);
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(ncclAllReduce(memory, memory, 16, ncclFloat32, ncclSum, part, nullptr),
                ncclSuccess);
    }
    int size = 0;
    EXPECT_EQ(ncclCommCount(part, &size), ncclSuccess);
    EXPECT_EQ(size, 4);
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(world), ncclSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  });
  onerank_nccl_set_host(nullptr, nullptr, nullptr, nullptr);
  EXPECT_EQ(calls, kThreads * kRounds);
}

}  // namespace
