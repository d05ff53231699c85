#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "torch_process.h"

/// PyTorch's own allocator on the virtual GPU. Block and segment sizes follow from its documented
/// rules: blocks of 512 B; segments of 2 MiB up to 1 MiB, of 20 MiB up to 10 MiB, else of a
/// multiple of 2 MiB. What is left of a large segment becomes a block of its own if it is more than
/// 1 MiB.
namespace virtual_gpu {
namespace {

const auto kBytes = at::TensorOptions().device(at::kCUDA).dtype(at::kByte);

TEST(TorchAllocator, AllocatesAndReservesWhatWasWorkedByHand) {
  in_torch_process(h100(), [] {
    const at::Tensor small = at::empty({1000}, kFloat);  // 4,000 B -> 4,096 B of a 2 MiB segment
    const at::Tensor tiny = at::empty({3}, kFloat);      // 12 B -> 512 B of the same
    const at::Tensor medium = at::empty({2 * kMiB}, kBytes);  // 2 MiB of a 20 MiB segment
    at::Tensor large = at::empty({31 * kMiB}, kBytes);  // 31 MiB -> a segment of 32 MiB, whole
    EXPECT_EQ(allocated_bytes(), 4096 + 512 + 2 * kMiB + 32 * kMiB);
    EXPECT_EQ(reserved_bytes(), (2 + 20 + 32) * kMiB);
    EXPECT_EQ(used_bytes(), static_cast<uint64_t>((2 + 20 + 32) * kMiB));
    large.reset();
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    EXPECT_EQ(used_bytes(), static_cast<uint64_t>((2 + 20) * kMiB));
  });
}

TEST(TorchAllocator, FillsTheDeviceToTheLastByteThenSaysOutOfMemoryInItsOwnWords) {
  VirtualGpuSpec spec = h100();
  spec.memory_bytes = 1024 * kMiB;
  in_torch_process(spec, [] {
    const at::Tensor half = at::empty({512 * kMiB}, kBytes);
    try {
      at::empty({768 * kMiB}, kBytes);
      ADD_FAILURE() << "1280 MiB fitted into 1024 MiB";
    } catch (const c10::OutOfMemoryError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("CUDA out of memory. Tried to allocate 768.00 MiB. GPU 0 has a total "
                          "capacity of 1024.00 MiB of which 512.00 MiB is free."),
                std::string::npos)
          << text;
    }
    const at::Tensor rest = at::empty({512 * kMiB}, kBytes);
    EXPECT_EQ(used_bytes(), static_cast<uint64_t>(1024 * kMiB));
    EXPECT_THROW(at::empty({1}, kBytes), c10::OutOfMemoryError);
  });
}

TEST(TorchAllocator, TakesMoreThanAnyGpuHasWhenTheLimitIsLifted) {
  in_torch_process(h100(), [] {
    set_memory_bytes(uint64_t{1} << 50);
    const at::Tensor huge = at::empty({int64_t{1} << 40}, kBytes);
    EXPECT_EQ(reserved_bytes(), int64_t{1} << 40);
  });
}

const std::map<std::string, std::string> kExpandable = {
    {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}};

TEST(TorchAllocator, MapsWholePagesOfExpandableSegments) {
  in_torch_process(
      h100(),
      [] {
        at::Tensor first = at::empty({30 * kMiB}, kBytes);
        EXPECT_EQ(allocated_bytes(), 30 * kMiB);
        EXPECT_EQ(reserved_bytes(), 40 * kMiB);  // two pages of 20 MiB
        const at::Tensor second = at::empty({15 * kMiB}, kBytes);
        EXPECT_EQ(reserved_bytes(), 60 * kMiB);  // the 10 MiB left over, and one page more
        const at::Tensor small = at::empty({1000}, kBytes);
        EXPECT_EQ(reserved_bytes(), 62 * kMiB);  // small blocks: pages of 2 MiB
        EXPECT_EQ(used_bytes(), static_cast<uint64_t>(62 * kMiB));
        first.reset();
        c10::getDeviceAllocator(at::kCUDA)->emptyCache();
        EXPECT_EQ(used_bytes(), static_cast<uint64_t>(42 * kMiB));  // one whole page was free
      },
      kExpandable);
}

TEST(TorchAllocator, RunsOutOfMemoryWithExpandableSegments) {
  VirtualGpuSpec spec = h100();
  spec.memory_bytes = 100 * kMiB;
  in_torch_process(
      spec,
      [] {
        at::Tensor all = at::empty({100 * kMiB}, kBytes);
        EXPECT_THROW(at::empty({1}, kBytes), c10::OutOfMemoryError);
        all.reset();
        all = at::empty({100 * kMiB}, kBytes);  // what was freed is there again
      },
      kExpandable);
}

}  // namespace
}  // namespace virtual_gpu
