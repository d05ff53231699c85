#include "sim/recording/counting_cpu_allocator.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace sim {
namespace {

TEST(CountingCpuAllocator, CountsBlocksRoundedUpTo512Bytes) {
  CountingCpuAllocator& allocator = CountingCpuAllocator::install();
  const int64_t before = allocator.current_bytes();
  const at::Tensor one_byte = at::empty({1}, at::kByte);
  EXPECT_EQ(allocator.current_bytes() - before, 512);
  const at::Tensor exactly_a_block = at::empty({128}, at::kFloat);
  EXPECT_EQ(allocator.current_bytes() - before, 2 * 512);
  const at::Tensor one_more = at::empty({129}, at::kFloat);
  EXPECT_EQ(allocator.current_bytes() - before, 4 * 512);
}

TEST(CountingCpuAllocator, TensorWithoutElementsTakesNothing) {
  CountingCpuAllocator& allocator = CountingCpuAllocator::install();
  const int64_t before = allocator.current_bytes();
  const at::Tensor nothing = at::empty({0}, at::kFloat);
  EXPECT_EQ(allocator.current_bytes(), before);
}

TEST(CountingCpuAllocator, FreedBlocksLeaveThePeakUntilItIsReset) {
  CountingCpuAllocator& allocator = CountingCpuAllocator::install();
  const int64_t before = allocator.current_bytes();
  allocator.reset_peak();
  { const at::Tensor freed = at::empty({1024}, at::kByte); }
  EXPECT_EQ(allocator.current_bytes(), before);
  EXPECT_EQ(allocator.peak_bytes(), before + 1024);
  allocator.reset_peak();
  EXPECT_EQ(allocator.peak_bytes(), before);
}

TEST(CountingCpuAllocator, TensorsAreWrittenAndReadAsEver) {
  CountingCpuAllocator::install();
  const at::Tensor ones = at::ones({1000}, at::kFloat);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(ones.data_ptr()) % 64, 0u);
  EXPECT_EQ(ones.clone().sum().item<float>(), 1000.0f);
}

TEST(CountingCpuAllocator, RawBlocksAreCountedToo) {
  CountingCpuAllocator& allocator = CountingCpuAllocator::install();
  const int64_t before = allocator.current_bytes();
  void* block = allocator.raw_allocate(100);
  std::memset(block, 1, 100);
  EXPECT_EQ(allocator.current_bytes() - before, 512);
  allocator.raw_deallocate(block);
  EXPECT_EQ(allocator.current_bytes(), before);
}

TEST(CountingCpuAllocator, WhatIsNotCountedIsNotCountedWhenFreedEither) {
  CountingCpuAllocator& allocator = CountingCpuAllocator::install();
  const int64_t before = allocator.current_bytes();
  at::Tensor outlives_the_scope;
  {
    const NotCounted scope;
    outlives_the_scope = at::empty({128}, at::kFloat);
  }
  EXPECT_EQ(allocator.current_bytes(), before);
  const at::Tensor counted = at::empty({128}, at::kFloat);
  outlives_the_scope.reset();
  EXPECT_EQ(allocator.current_bytes(), before + 512);
}

TEST(CountingCpuAllocator, WhatWorkOnOtherThreadsAllocatesForItIsNotCounted) {
  CountingCpuAllocator& allocator = CountingCpuAllocator::install();
  const int64_t before = allocator.current_bytes();
  std::thread worker;
  at::Tensor for_it, for_itself;
  {
    const NotCounted scope;
    worker = std::thread([&, handed_on = at::ThreadLocalState()] {
      {
        const at::ThreadLocalStateGuard carried(handed_on);
        for_it = at::empty({128}, at::kFloat);
      }
      for_itself = at::empty({128}, at::kFloat);
    });
  }
  worker.join();
  EXPECT_EQ(allocator.current_bytes(), before + 512);
}

}  // namespace
}  // namespace sim
