#include "sim/virtual_gpu/cudart/address_spans.h"

#include <gtest/gtest.h>

namespace virtual_gpu {
namespace {

constexpr uint64_t kOneMiB = uint64_t{1} << 20;

// As NVIDIA's driver placed the first parameters of a layer on an H200.
TEST(AddressSpans, AreEachBelowTheOneBefore) {
  constexpr uint64_t kEnd = uint64_t{1} << 40;
  AddressSpans spans(kEnd);
  const uint64_t first = spans.take(126 * kOneMiB);
  EXPECT_EQ(first, kEnd - (32 + 128) * kOneMiB);
  EXPECT_EQ(spans.take(2 * kOneMiB), first + 126 * kOneMiB);
  EXPECT_EQ(spans.take(20 * kOneMiB), kEnd - 22 * kOneMiB);  // what the context leaves
  EXPECT_EQ(spans.take(28 * kOneMiB), first - 32 * kOneMiB);
  EXPECT_EQ(spans.take(14 * kOneMiB), first - 64 * kOneMiB);
  EXPECT_EQ(spans.take(28 * kOneMiB), first - 96 * kOneMiB);
  EXPECT_EQ(spans.take(14 * kOneMiB), first - 50 * kOneMiB);
}

}  // namespace
}  // namespace virtual_gpu
