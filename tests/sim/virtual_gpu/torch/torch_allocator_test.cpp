// What PyTorch's own tests of its CUDA allocator claim (test/test_cuda.py of torch 2.11), on the
// virtual GPU. Named after the tests they follow.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "torch_process.h"

namespace virtual_gpu {
namespace {

constexpr int64_t kMb = 1024 * 1024;
constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

void set_settings(const std::string& settings) {
  c10::CachingAllocator::setAllocatorSettings(settings);
}

c10::CachingDeviceAllocator::DeviceStats stats() {
  return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0);
}

void empty_cache() { c10::getDeviceAllocator(at::kCUDA)->emptyCache(); }

/// set_per_process_memory_fraction(), which is not part of c10's interface for all devices.
void set_memory_fraction(double fraction) {
  static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator*>(c10::getDeviceAllocator(at::kCUDA))
      ->setMemoryFraction(fraction, 0);
}

at::Tensor mebibytes(int64_t n) {
  return at::empty({n * kMb}, at::TensorOptions().device(at::kCUDA).dtype(at::kByte));
}

/// Allows `n` MiB on top of what is reserved.
void allow_mebibytes(int64_t n) {
  empty_cache();
  const double all = static_cast<double>(h100().memory_bytes);
  constexpr int64_t kForRounding = 512;  // of the fraction
  set_memory_fraction(static_cast<double>(n * kMb + reserved_bytes() + kForRounding) / all);
}

/// power2_div() of the test: the next step of a `divisions`th between powers of two.
int64_t power2_div(int64_t size, int64_t divisions) {
  int64_t power = 1;
  while (power < size) power *= 2;
  if (power == size) return power;
  int64_t rounded = power / 2;
  while (rounded < size) rounded += power / 2 / divisions;
  return rounded;
}

/// Active bytes that `elements` floats add, and the bytes asked for.
std::pair<int64_t, int64_t> bytes_of_floats(int64_t elements) {
  const auto before = stats();
  const at::Tensor tensor = at::empty({elements}, kFloat);
  const auto after = stats();
  return {after.active_bytes[kAll].allocated - before.active_bytes[kAll].allocated,
          after.requested_bytes[kAll].allocated - before.requested_bytes[kAll].allocated};
}

TEST(TorchAllocatorSettings, RoundUpToDivisionsOfPowersOfTwo) {  // test_allocator_settings
  in_torch_process(h100(), [] {
    constexpr int64_t kElements = 21 * kMb, kBigElements = 100 * kMb;
    EXPECT_EQ(bytes_of_floats(kElements).first, 4 * kElements);
    set_settings("roundup_power2_divisions:4");
    EXPECT_EQ(bytes_of_floats(kElements), (std::pair{power2_div(4 * kElements, 4), 4 * kElements}));
    EXPECT_EQ(power2_div(4 * kElements, 4), 96 * kMb);

    set_settings("garbage_collection_threshold:0.5,max_split_size_mb:40");  // resets the divisions
    empty_cache();
    EXPECT_EQ(bytes_of_floats(kElements).first, 4 * kElements);

    set_settings(
        "garbage_collection_threshold:0.5,max_split_size_mb:40,"
        "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]");
    empty_cache();
    EXPECT_EQ(bytes_of_floats(kElements).first, power2_div(4 * kElements, 8));
    EXPECT_EQ(bytes_of_floats(kBigElements).first, power2_div(4 * kBigElements, 2));
  });
}

TEST(TorchAllocatorSettings, RefuseWhatTheyDoNotKnow) {  // test_allocator_settings
  in_torch_process(h100(), [] {
    for (const char* settings : {"foo:1,bar:2",
                                 "garbage_collection_threshold:1.2",
                                 "max_split_size_mb:2",
                                 "release_lock_on_cudamalloc:none"}) {
      EXPECT_THROW(set_settings(settings), c10::Error) << settings;
    }
  });
}

TEST(TorchAllocatorSettings, MaxSplitHoldsBesideExpandableSegments) {  // test_max_split_expandable
  in_torch_process(h100(), [] {
    allow_mebibytes(120);
    set_settings("expandable_segments:False,max_split_size_mb:40");
    at::Tensor a = mebibytes(40);
    set_settings("expandable_segments:True,max_split_size_mb:40");
    at::Tensor b = mebibytes(40);
    set_settings("expandable_segments:False,max_split_size_mb:40");
    at::Tensor c = mebibytes(40);
    EXPECT_THROW(mebibytes(40), c10::OutOfMemoryError);
    a.reset(), b.reset(), c.reset();
    mebibytes(120);  // gives back what is cached, expandable segments too
    EXPECT_EQ(stats().num_alloc_retries, 2);
  });
}

TEST(TorchAllocatorSettings, GarbageIsCollectedBesideExpandableSegments) {
  // test_garbage_collect_expandable
  in_torch_process(h100(), [] {
    allow_mebibytes(120);
    set_settings("expandable_segments:False,garbage_collection_threshold:0.5");
    at::Tensor a = mebibytes(40);
    set_settings("expandable_segments:True,garbage_collection_threshold:0.5");
    at::Tensor b = mebibytes(40);
    a.reset(), b.reset();
    mebibytes(80);
    EXPECT_EQ(allocated_bytes(), 0);
  });
}

TEST(TorchAllocatorSettings, GarbageCollectionGivesBackUnusedSegmentsBeforeTheDeviceIsFull) {
  in_torch_process(h100(), [] {
    allow_mebibytes(400);
    const auto reserved_after_using_other_sizes = [](const char* settings) {
      set_settings(settings);
      empty_cache();
      mebibytes(100);
      mebibytes(120);
      mebibytes(140);
      return reserved_bytes() / kMb;
    };
    EXPECT_EQ(reserved_after_using_other_sizes("garbage_collection_threshold:0.99"), 360);
    // Before the third segment 220 of 400 are reserved: the threshold of 200 is passed.
    EXPECT_LT(reserved_after_using_other_sizes("garbage_collection_threshold:0.5"), 360);
  });
}

TEST(TorchAllocatorSettings, FractionLimitsWhatAProcessMayReserve) {  // test_set_per_process_...
  in_torch_process(h100(), [] {
    const auto total = static_cast<int64_t>(h100().memory_bytes);
    set_memory_fraction(0.5);
    const auto fits = static_cast<int64_t>(0.499 * static_cast<double>(total)) / kMb;
    { const at::Tensor half = mebibytes(fits); }
    empty_cache();
    EXPECT_THROW(mebibytes(fits + fits / 2), c10::OutOfMemoryError);
  });
}

TEST(TorchAllocatorSettings, SplitBlocksAreInactiveUntilTheirSegmentIsWholeAgain) {
  // _test_memory_stats_generator: inactive split memory is none when nothing is allocated.
  in_torch_process(h100(), [] {
    at::Tensor first = mebibytes(2);  // of a segment of 20 MiB
    const at::Tensor second = mebibytes(3);
    EXPECT_EQ(stats().inactive_split_bytes[kAll].current, 15 * kMb);
    first.reset();
    EXPECT_EQ(stats().inactive_split_bytes[kAll].current, 17 * kMb);
    EXPECT_EQ(stats().inactive_split[kAll].current, 2);
    EXPECT_EQ(stats().segment[kAll].current, 1);
  });
}

TEST(TorchAllocatorSettings, OfTheTwoVariablesTheOneWithCudaInItsNameWins) {
  const auto is_expandable = [] {
    mebibytes(30);
    EXPECT_EQ(reserved_bytes(), 40 * kMb);  // two pages of 20 MiB, where a segment has 30 MiB
  };
  in_torch_process(h100(),
                   is_expandable,
                   {{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"},
                    {"PYTORCH_ALLOC_CONF", "expandable_segments:False"}});
  in_torch_process(h100(), is_expandable, {{"PYTORCH_ALLOC_CONF", "expandable_segments:True"}});
}

}  // namespace
}  // namespace virtual_gpu
