#include "estimator/compute/memory_rate.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

TEST(MemorySizeShare, NeverMakesMoreBytesFaster) {
  double before = 0;
  for (double bytes = 1; bytes < 1e11; bytes *= 1.1) {
    const double time = bytes / memory_size_share(bytes);
    EXPECT_GE(time, before);
    before = time;
  }
  EXPECT_DOUBLE_EQ(memory_size_share(1e9), 1);
}

TEST(MemoryRate, IsAShareForEveryGpuAndSaysWhenItIsAssumed) {
  for (const Gpu& each : gpus()) {
    EXPECT_GT(memory_rate(each).share, 0.5) << each.id;
    EXPECT_LT(memory_rate(each).share, 1) << each.id;
  }
  EXPECT_EQ(memory_rate(*find_gpu("h100-sxm")).source, Source::kPublished);
  EXPECT_EQ(memory_rate(*find_gpu("l40s")).source, Source::kAssumed);
}

}  // namespace
}  // namespace estimator
