#include "estimator/program/program_roofline.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/estimator/cluster/small_program.h"

namespace estimator {
namespace {

using testing::DoubleNear;

class ProgramRooflineTest : public testing::Test {
 protected:
  std::vector<RankProfile> profiles_ = {small_program()};

  Roofline roofline() const {
    return program_roofline(ProgramReplay(
        profiles_,
        {.gpu = *find_gpu("h100-sxm"), .fabric = fabric_of(h100_cluster(1)), .gpu_deviation = 0}));
  }
  static const StepBound& bound(const Roofline& roofline, const std::string& name) {
    const auto found = std::find_if(roofline.bounds.begin(),
                                    roofline.bounds.end(),
                                    [&](const StepBound& b) { return b.name == name; });
    EXPECT_NE(found, roofline.bounds.end()) << name;
    return *found;
  }
};

TEST_F(ProgramRooflineTest, DividesTheStepAmongWhatItWaitsFor) {
  const Roofline found = roofline();
  double sum = 0;
  for (const StepBound& each : found.bounds) sum += each.seconds;
  EXPECT_THAT(sum, DoubleNear(found.iteration_seconds, 1e-12));
  // The collective is longer than the product beside it: it counts where it is alone.
  EXPECT_GT(bound(found, "link inside a machine").seconds, 0);
  EXPECT_GT(bound(found, "compute").seconds, 0);
  EXPECT_GT(bound(found, "memory bandwidth").seconds, 0);
  EXPECT_EQ(found.command, profiles_[0].program->command);
}

TEST_F(ProgramRooflineTest, SaysByAReplayWhatTwiceTheSpeedWouldBring) {
  const Roofline found = roofline();
  // Beside the collective a product of half the time hides as well: nothing is won.
  const StepBound& compute = bound(found, "compute");
  EXPECT_THAT(compute.step_seconds_if_twice_as_fast,
              DoubleNear(found.iteration_seconds, compute.seconds / 2));
  const StepBound& memory = bound(found, "memory bandwidth");
  EXPECT_THAT(memory.step_seconds_if_twice_as_fast,
              DoubleNear(found.iteration_seconds - memory.seconds / 2, 1e-7));
}

TEST_F(ProgramRooflineTest, HasAProductAtTheRateOfItsShape) {
  const Roofline found = roofline();
  const auto product = std::find_if(found.operators.begin(),
                                    found.operators.end(),
                                    [](const RooflineRow& row) { return row.name == "cublas"; });
  ASSERT_NE(product, found.operators.end());
  EXPECT_EQ(product->flops, 2.0 * 4096 * 4096 * 4096);
  EXPECT_EQ(product->bytes, 3.0 * 4096 * 4096 * 2);
  EXPECT_GT(product->share_of_peak_flops, 0.5);
}

TEST_F(ProgramRooflineTest, CountsLayersAsOneModule) {
  profiles_[0].trace->modules = {"layers.12.mlp"};
  EXPECT_EQ(roofline().modules.at(0).name, "layers.*.mlp");
}

// In place of the last kernel, of which nothing is known: NVLink 4 at 370 GB/s.
TEST_F(ProgramRooflineTest, CountsMemoryOfOtherRanksToTheLink) {
  const double without = bound(roofline(), "link inside a machine").seconds;
  profiles_[0].trace->works.back() = {
      .kind = WorkKind::kCopy, .name = kPeerToPeer, .bytes = 1 << 28};
  EXPECT_THAT(bound(roofline(), "link inside a machine").seconds - without,
              DoubleNear(268435456.0 / 370e9, 1e-5));
}

TEST_F(ProgramRooflineTest, CallsAHostThatIsLateALaunch) {
  TracedRank rank(0, 8);
  for (int i = 0; i < 10; ++i) {
    rank.compute(0, 0, HostIssue::kCall);
    rank.profile.trace->works.back() = {.name = "small"};
  }
  rank.profile.device.gpu = "h100-sxm";
  profiles_ = {rank.profile};
  const Roofline found = roofline();
  ASSERT_EQ(found.bounds.size(), 1u);
  EXPECT_EQ(found.bounds[0].name, "launches and sharing");
  EXPECT_LT(found.bounds[0].step_seconds_if_twice_as_fast, 0.6 * found.iteration_seconds);
}

}  // namespace
}  // namespace estimator
