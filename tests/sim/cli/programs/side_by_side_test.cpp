#include "sim/cli/programs/side_by_side.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(SideBySide, RunsAsManyRanksAsProcessorsAndMemoryAllow) {
  EXPECT_EQ(ranks_that_fit(8, 64 * kGibibyte, kGibibyte), 8);
  EXPECT_EQ(ranks_that_fit(8, 7 * kGibibyte, 2 * kGibibyte), 3);
  EXPECT_EQ(ranks_that_fit(8, kGibibyte, 2 * kGibibyte), 1) << "one has to run in any case";
  EXPECT_EQ(ranks_that_fit(8, 0, 2 * kGibibyte), 1);
}

}  // namespace
}  // namespace sim
