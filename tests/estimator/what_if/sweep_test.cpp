#include "estimator/what_if/sweep.h"

#include <gmock/gmock.h>

#include "estimator/base/units.h"

namespace estimator {
namespace {

using testing::ElementsAre;

constexpr int64_t kCapacity = 80 * kGiB;

SweepResult result_of(int64_t peak_gib, double seconds) {
  return {.outcome = peak_gib <= 80 ? Fit::kFits : Fit::kDoesNotFit,
          .peak_bytes = peak_gib * kGiB,
          .headroom_bytes = kCapacity - peak_gib * kGiB,
          .limit_bytes = kCapacity,
          .iteration_seconds = seconds};
}

TEST(Sweep, HasEachCombinationAndChangesTheLastAxisFastest) {
  const auto all = combinations({{"--tp", "", {"1", "2"}, {}}, {"--mbs", "", {"4", "8"}, {}}});
  EXPECT_THAT(all,
              ElementsAre(ElementsAre("1", "4"),
                          ElementsAre("1", "8"),
                          ElementsAre("2", "4"),
                          ElementsAre("2", "8")));
}

/// 20 + 20 x GiB, of which 4 samples need 100; the point of 3 could not be.
Sweep batch_sweep() {
  Sweep sweep;
  sweep.axes = {{"--gpu", "cluster.gpu", {"h100", "b200"}, {}},
                {"--mbs", "", {"4", "1", "3", "2"}, {4, 1, 3, 2}}};
  for (const char* gpu : {"h100", "b200"}) {
    sweep.points.push_back({{gpu, "4"}, std::nullopt, result_of(100, 1.2)});
    sweep.points.push_back({{gpu, "1"}, std::nullopt, result_of(40, 1.2)});
    sweep.points.push_back({{gpu, "3"}, "3 does not divide 64", std::nullopt});
    sweep.points.push_back({{gpu, "2"}, std::nullopt, result_of(60, 1.2)});
  }
  return sweep;
}

TEST(Sweep, TellsTheLawAlongAxesOfNumbers) {
  Sweep sweep = batch_sweep();
  add_scaling(sweep);
  ASSERT_EQ(sweep.scaling.size(), 4u);  // memory and time at each GPU
  EXPECT_EQ(sweep.scaling[0].others, "--gpu h100");
  EXPECT_EQ(sweep.scaling[0].quantity, "peak_bytes");
  EXPECT_EQ(sweep.scaling[0].words, "linear");
  EXPECT_NEAR(*sweep.scaling[0].factor, 20.0 * kGiB, 1e3);
  EXPECT_EQ(sweep.scaling[1].words, "constant");
  EXPECT_FALSE(sweep.scaling[1].exponent);
}

TEST(Sweep, StopsFittingWhereTheHeadroomBegins) {
  Sweep sweep = batch_sweep();
  for (SweepPoint& point : sweep.points) {
    if (!point.result) continue;
    point.result->limit_bytes = 50 * kGiB;  // of 80
    const bool fits = point.values[1] == "1";
    point.result->outcome = fits ? Fit::kFits : Fit::kTooClose;
  }
  add_scaling(sweep);
  EXPECT_EQ(sweep.limits[0].first_that_does_not, "2");
  EXPECT_EQ(sweep.limits[0].outcome, Fit::kTooClose);
  EXPECT_NEAR(*sweep.limits[0].estimated, 1.5, 1e-6);  // 20 + 20 x 1.5 = 50
}

TEST(Sweep, TellsWhereItStopsFitting) {
  Sweep sweep = batch_sweep();
  add_scaling(sweep);
  ASSERT_EQ(sweep.limits.size(), 2u);
  EXPECT_EQ(sweep.limits[0].last_that_fits, "2");
  EXPECT_EQ(sweep.limits[0].first_that_does_not, "4");
  EXPECT_NEAR(*sweep.limits[0].estimated, 3, 1e-6);  // 20 + 20 x 3 = 80
}

SweepResult result_on(int64_t gpus, double tokens_per_second) {
  SweepResult result = result_of(40, 1);
  result.gpus = gpus;
  result.tokens_per_second = tokens_per_second;
  return result;
}

std::vector<std::optional<double>> efficiencies_of(Sweep sweep) {
  add_scaling(sweep);
  std::vector<std::optional<double>> efficiencies;
  for (const SweepPoint& point : sweep.points) {
    efficiencies.push_back(point.result ? point.result->scaling_efficiency : std::nullopt);
  }
  return efficiencies;
}

// 8 GPUs make 100 tokens/s each, 16 of the same micro-batch 90, and 32 make 50.
TEST(Sweep, TellsTheScalingEfficiencyAgainstTheFewestGpus) {
  Sweep sweep;
  sweep.axes = {{"--gpus", "", {"32", "8", "16"}, {32, 8, 16}},
                {"--mbs", "training.micro_batch_size", {"1", "2"}, {1, 2}}};
  sweep.points = {{{"32", "1"}, std::nullopt, result_on(32, 1600)},
                  {{"32", "2"}, std::nullopt, result_on(32, 3200)},
                  {{"8", "1"}, std::nullopt, result_on(8, 800)},
                  {{"8", "2"}, "too large", std::nullopt},
                  {{"16", "1"}, std::nullopt, result_on(16, 1440)},
                  {{"16", "2"}, std::nullopt, result_on(16, 1600)}};
  EXPECT_THAT(
      efficiencies_of(sweep),
      ElementsAre(0.5, 1.0, 1.0, std::nullopt, testing::Optional(testing::DoubleEq(0.9)), 1.0));
}

TEST(Sweep, HasNoScalingEfficiencyOnAlwaysTheSameGpus) {
  const auto efficiencies = efficiencies_of(batch_sweep());
  ASSERT_FALSE(efficiencies.empty());
  for (const std::optional<double>& efficiency : efficiencies) {
    EXPECT_FALSE(efficiency);
  }
}

TEST(Sweep, SaysNothingOfAnAxisWithOneResult) {
  Sweep sweep;
  sweep.axes = {{"--tp", "", {"1", "2"}, {1, 2}}};
  sweep.points = {{{"1"}, std::nullopt, result_of(40, 1)}, {{"2"}, "no", std::nullopt}};
  add_scaling(sweep);
  EXPECT_TRUE(sweep.scaling.empty());
  EXPECT_TRUE(sweep.limits.empty());
}

}  // namespace
}  // namespace estimator
