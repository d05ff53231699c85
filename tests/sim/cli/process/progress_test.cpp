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

TEST_F(ProgressTest, WritesALineAtMostOnceInASecondAndOnlyWhenItChanged) {
  Progress progress("running ranks", 16, display(false), start_);
  progress.update(start_ + 1s);
  progress.count_one();
  progress.update(start_ + 1900ms);
  progress.update(start_ + 2s);
  progress.update(start_ + 5s);
  EXPECT_EQ(written_, "running ranks: 0 of 16\nrunning ranks: 1 of 16\n");
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
