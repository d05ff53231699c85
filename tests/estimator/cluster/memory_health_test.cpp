#include "estimator/cluster/memory_health.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

HealthLevel level_of(int64_t used, const char* thresholds) {
  return memory_health({.peak_bytes = used, .capacity_bytes = 1000},
                       *find_health_thresholds(thresholds))
      .level;
}

TEST(MemoryHealth, FollowsTheBalancedThresholdsOf90And92And95And97Percent) {
  EXPECT_EQ(level_of(900, "balanced"), HealthLevel::kHealthy);
  EXPECT_EQ(level_of(901, "balanced"), HealthLevel::kAboveTarget);
  EXPECT_EQ(level_of(921, "balanced"), HealthLevel::kWarning);
  EXPECT_EQ(level_of(951, "balanced"), HealthLevel::kCritical);
  EXPECT_EQ(level_of(971, "balanced"), HealthLevel::kEmergency);
}

TEST(MemoryHealth, IsStricterWhereItIsToBeConservative) {
  for (int64_t used = 500; used <= 1100; used += 5) {
    EXPECT_LE(level_of(used, "aggressive"), level_of(used, "balanced")) << used;
    EXPECT_LE(level_of(used, "balanced"), level_of(used, "conservative")) << used;
  }
  EXPECT_EQ(find_health_thresholds("bold"), nullptr);
}

}  // namespace
}  // namespace estimator
