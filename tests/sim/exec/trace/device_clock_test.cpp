#include "sim/exec/trace/device_clock.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

TEST(DeviceClock, DoesTheWorksOfAStreamOneAfterTheOther) {
  DeviceClock clock;
  clock.record(0, 1, true);
  clock.run(0, 2);
  clock.run(1, 8);
  clock.run(0, 3);
  clock.record(0, 2, true);
  EXPECT_EQ(clock.seconds_between(1, 2), 5);
  EXPECT_EQ(clock.seconds_between(2, 1), -5);
}

TEST(DeviceClock, BeginsNoWorkBeforeTheHostHasAskedForIt) {
  DeviceClock clock;
  clock.record(0, 1, true);
  clock.host_works(4);
  clock.run(0, 1);
  clock.host_works(0.5);
  clock.record(0, 2, true);
  EXPECT_EQ(clock.seconds_between(1, 2), 5);
}

TEST(DeviceClock, LetsStreamsWaitForRecordsOfOthers) {
  DeviceClock clock;
  clock.record(0, 1, true);
  clock.run(1, 6);
  clock.record(1, 2, false);
  clock.stream_waits(0, 2);
  clock.run(0, 1);
  clock.record(0, 3, true);
  EXPECT_EQ(clock.seconds_between(1, 3), 7);
}

TEST(DeviceClock, LetsTheHostWait) {
  DeviceClock clock;
  clock.run(0, 2);
  clock.record(0, 1, true);
  clock.run(0, 3);
  clock.host_waits_for_record(1);
  EXPECT_EQ(clock.host(), 2);
  clock.host_waits_for_stream(0);
  EXPECT_EQ(clock.host(), 5);
  clock.run(1, 4);
  clock.host_waits_for_device();
  EXPECT_EQ(clock.host(), 9);
}

TEST(DeviceClock, TakesNoTimeForNothingButIsNeverZero) {
  DeviceClock clock;
  clock.record(0, 1, true);
  clock.record(0, 2, true);
  EXPECT_EQ(clock.seconds_between(1, 2), DeviceClock::kResolutionSeconds);
  EXPECT_EQ(clock.seconds_between(1, 1), 0);
}

TEST(DeviceClock, KnowsNoOtherRecords) {
  DeviceClock clock;
  clock.record(0, 1, false);
  clock.record(0, 2, true);
  EXPECT_EQ(clock.seconds_between(1, 2), std::nullopt) << "nobody can ask for the first one";
  EXPECT_EQ(clock.seconds_between(2, 9), std::nullopt);
}

TEST(DeviceClock, WaitsForNoRecordOfLongAgo) {
  DeviceClock clock;
  clock.run(1, 5);
  clock.record(1, 1, false);
  for (uint64_t record = 2; record < 10000; ++record) clock.record(2, record, false);
  clock.stream_waits(0, 1);
  EXPECT_EQ(clock.run(0, 1).end, 1);
}

}  // namespace
}  // namespace sim
