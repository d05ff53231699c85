// When an event has happened: once it is recorded, or when the host has waited for it. It decides
// when the allocator has memory back that a second stream used.

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::HasSubstr;

constexpr int64_t kBlockBytes = int64_t{64} << 20;

class ExecEvents : public ExecProgram {
 protected:
  /// Blocks reserved at the peak of record_stream.py, which never holds more than one.
  int64_t reserved_blocks(const std::string& mode, const std::string& blocks_between_waits) {
    const ProgramResult result =
        run_program("record_stream.py", {"--events", mode}, {blocks_between_waits});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr(", events " + mode + "\n"));
    EXPECT_EQ(profile(0).program->events, mode);
    EXPECT_EQ(printed(result.output, "allocated"), kBlockBytes);
    constexpr int64_t kSegmentOfStep = 2 << 20;  // which it takes after it has printed
    EXPECT_EQ(printed(result.output, "reserved") + kSegmentOfStep, profile(0).peak.reserved_bytes);
    return profile(0).peak.reserved_bytes / kBlockBytes;
  }
};

TEST_F(ExecEvents, ThatHappenAtOnceGiveTheBlockBackForTheNextOne) {
  EXPECT_EQ(reserved_blocks("immediate", "4"), 1);
}

TEST_F(ExecEvents, ThatTheHostWaitsForKeepEveryBlockUntilThen) {
  EXPECT_EQ(reserved_blocks("ordered", "4"), 4);
  EXPECT_EQ(reserved_blocks("ordered", "12"), 12);
}

/// The allocator's own questions do not end the waiting, and NCCL's watchdog does not hang.
TEST_F(ExecEvents, ThatAreOrderedLetAShardedModelTrainAndEnd) {
  const ProgramResult result = run_program(
      "fsdp2.py", {"--events", "ordered", "--world-size", "64", "--rank", "9", "--timeout", "120"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(9).program->optimizer_steps, 2);
}

/// A product of 8,192 x 8,192 x 8,192 has 1.1e12 FLOPs: 1.11 ms at the peak of 989 TFLOP/s, and for
/// a short time a usual H100 runs at 770 to 830 (power.json). The copy moves 256 MiB: 80 us at the
/// 3.35 TB/s of the data sheet. Ten small kernels take the host 10 times 16.9 + 5.1 us at most.
TEST_F(ExecEvents, TellHowLongTheDeviceWouldHaveTaken) {
  const ProgramResult result = run_program("times.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto told = [&](const char* word) {
    return static_cast<double>(printed(result.output, word));
  };
  EXPECT_LE(told("nothing"), 1);
  EXPECT_THAT(told("product"), testing::AllOf(testing::Ge(1325), testing::Le(1430)));
  EXPECT_NEAR(told("two"), 2 * told("product"), 25) << "the host issues the second one meanwhile";
  EXPECT_NEAR(told("beside"), told("product"), 5);
  EXPECT_THAT(told("copy"), testing::AllOf(testing::Ge(80), testing::Le(130)));
  EXPECT_THAT(told("small"), testing::AllOf(testing::Ge(20), testing::Le(250)));
  EXPECT_THAT(result.output, HasSubstr("times between its events (computed)"));
  // The profiled iterations have two products each: the gradient of the matrix is not asked for.
  EXPECT_EQ(told("calls"), 4);
  EXPECT_NEAR(told("profiled"), 4 * told("product"), 200);
  EXPECT_GE(told("kernels"), 12);
}

TEST_F(ExecEvents, OfAnUnknownModeAreRefused) {
  const ProgramResult result = run({"exec", "--events", "orderd", "--", "true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("error: unknown mode of events"));
  EXPECT_THAT(result.error, HasSubstr("did you mean ordered?"));
}

}  // namespace
}  // namespace sim
