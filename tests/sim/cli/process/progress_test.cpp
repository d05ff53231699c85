#include "sim/cli/process/progress.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

using namespace std::chrono_literals;

/// What was written, with updates at the given times after the start.
class ProgressTest : public testing::Test {
 protected:
  Progress::Display display(bool in_place) {
    return {in_place, [this](std::string_view text) { written_ += text; }};
  }
  const Progress::Clock::time_point start_{};
  std::string written_;
};

TEST_F(ProgressTest, SaysNothingInTheFirstSecond) {
  Progress progress("running ranks", 16, display(false), start_);
  progress.count_one();
  progress.update(start_ + 999ms);
  EXPECT_EQ(written_, "");
}

TEST_F(ProgressTest, WritesALineInALogAtMostOnceInTenSecondsAndOnlyWhenItChanged) {
  Progress progress("running ranks", 16, display(false), start_);
  progress.update(start_ + 9s);
  progress.update(start_ + 10s);
  progress.count_one();
  progress.update(start_ + 19s);
  progress.update(start_ + 20s);
  progress.update(start_ + 50s);
  // One of 16 took 20 s, so that 15 take 300 s.
  EXPECT_EQ(written_, "running ranks: 0 of 16\nrunning ranks: 1 of 16, about 300 s left\n");
}

TEST_F(ProgressTest, SaysNoTimeWhereNothingIsDoneOrLeft) {
  Progress progress("running ranks", 2, display(true), start_);
  progress.update(start_ + 1s);
  progress.count_one();
  progress.count_one();
  progress.update(start_ + 2s);
  EXPECT_EQ(written_, "\r\x1b[Krunning ranks: 0 of 2\r\x1b[Krunning ranks: 2 of 2");
}

TEST_F(ProgressTest, TakesBackItsLineOnATerminal) {
  {
    Progress progress("running ranks", 2, display(true), start_);
    progress.update(start_ + 1s);
  }
  EXPECT_EQ(written_, "\r\x1b[Krunning ranks: 0 of 2\r\x1b[K");
}

TEST_F(ProgressTest, LeavesNoTraceOfWhatWasQuick) {
  { Progress progress("running ranks", 2, display(true), start_); }
  EXPECT_EQ(written_, "");
}

}  // namespace
}  // namespace sim
