#include "sim/cli/process/side_by_side.h"

#include <gtest/gtest.h>

#include "sim/cli/process/machine_memory.h"

namespace sim {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(SideBySide, RunsAsManyRanksAsProcessorsAndMemoryAllow) {
  EXPECT_EQ(ranks_that_fit(8, 64 * kGibibyte, kGibibyte), 8);
  EXPECT_EQ(ranks_that_fit(8, 7 * kGibibyte, 2 * kGibibyte), 3);
  EXPECT_EQ(ranks_that_fit(8, kGibibyte, 2 * kGibibyte), 1) << "one has to run in any case";
  EXPECT_EQ(ranks_that_fit(8, 0, 2 * kGibibyte), 1);
}

TEST(SideBySide, ReadsWhatIsAvailable) {
  EXPECT_EQ(available_bytes_in("MemTotal:       8 kB\nMemAvailable:    4 kB\n"), 4096);
  EXPECT_EQ(available_bytes_in("MemTotal:       8 kB\n"), 0);
}

}  // namespace
}  // namespace sim
