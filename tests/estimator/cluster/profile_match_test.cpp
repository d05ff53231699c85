#include "estimator/cluster/profile_match.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

std::string complaint(const Plan& plan, const std::vector<RankProfile>& profiles) {
  return complaint_of([&] { match_profiles(plan, rank_classes(plan), profiles); });
}

TEST(MatchProfiles, FindsEachClassByItsStage) {
  const Plan plan = pipeline_plan();
  std::vector<RankProfile> profiles = profiles_of(plan);
  std::swap(profiles[0], profiles[3]);
  const auto matched = match_profiles(plan, rank_classes(plan), profiles);
  ASSERT_EQ(matched.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(matched[i]->coordinate.pipeline, static_cast<int64_t>(i));
}

TEST(MatchProfiles, TakesAnyRankOfAClass) {
  const Plan plan = small_plan();
  const std::vector<RankProfile> profiles = {profile_of(plan, 5)};
  EXPECT_EQ(match_profiles(plan, rank_classes(plan), profiles)[0]->rank, 5);
}

TEST(MatchProfiles, TakesTheHungriestOfSeveral) {
  const Plan plan = small_plan();
  const std::vector<RankProfile> profiles = {profile_of(plan, 0, 1e-3, 1e-3, 10),
                                             profile_of(plan, 1, 1e-3, 1e-3, 30),
                                             profile_of(plan, 2, 1e-3, 1e-3, 20)};
  EXPECT_EQ(match_profiles(plan, rank_classes(plan), profiles)[0]->rank, 1);
}

TEST(MatchProfiles, NamesTheRanksThatWereNotRun) {
  const Plan plan = pipeline_plan();
  const std::string text = complaint(plan, {profile_of(plan, 0), profile_of(plan, 2)});
  EXPECT_TRUE(contains(text, "2 of 4 classes")) << text;
  EXPECT_TRUE(contains(text, "stages without one: 1, 3")) << text;
  EXPECT_TRUE(contains(text, "onerank run")) << text;
  EXPECT_TRUE(contains(text, "ranks 1, 3")) << text;
}

TEST(MatchProfiles, RefusesAProfileOfAnotherPlanAndSaysWhatDiffers) {
  const Plan other = small_plan({{"training", {{"recompute", "full"}}}});
  const std::string text = complaint(small_plan(), {profile_of(other, 0)});
  EXPECT_TRUE(contains(text, "rank 0 is of another plan")) << text;
  EXPECT_TRUE(contains(text, "training.recompute: \"none\" in the plan, \"full\" in the profile"))
      << text;
}

TEST(MatchProfiles, RefusesARankThatThePlanHasNot) {
  const Plan plan = pipeline_plan();
  RankProfile foreign = profile_of(plan, 3);
  foreign.rank = 4;
  EXPECT_TRUE(contains(complaint(plan, {foreign}), "rank = 4"));
  RankProfile misplaced = profile_of(plan, 3);
  misplaced.coordinate.pipeline = 1;
  EXPECT_TRUE(contains(complaint(plan, {misplaced}), "coordinate.pp = 1"));
}

TEST(MatchProfiles, RefusesAProfileOfAnotherWorldOrVirtualGpu) {
  const Plan plan = small_plan();
  RankProfile larger = profile_of(plan, 0);
  larger.world_size = 999;
  EXPECT_TRUE(contains(complaint(plan, {larger}), "world_size = 999, that of the plan 8"));
  RankProfile other = profile_of(plan, 0);
  other.device.gpu = "b200-sxm";
  EXPECT_TRUE(contains(complaint(plan, {other}), "device.gpu = b200-sxm"));
}

TEST(FirstDifference, OfNameLinksAndPriceIsNone) {
  const Json plan = to_json(small_plan());
  const Json other =
      to_json(small_plan({{"name", "other"},
                          {"cluster", {{"usd_per_gpu_hour", 2.5}, {"inter_link", "roce-400"}}},
                          {"training", {{"tokens", 1000000}}}}));
  EXPECT_EQ(first_difference(plan, other), "");
}

TEST(FirstDifference, OfNetworkAndFailuresIsNone) {
  Json other = to_json(small_plan(
      {{"cluster",
        {{"nodes_per_pod", 4}, {"spine_oversubscription", 7}, {"sharp", true}, {"nvls", false}}},
       {"reliability", {{"restart_seconds", 60}}}}));
  EXPECT_EQ(first_difference(to_json(small_plan()), other), "");
  other.erase("reliability");  // a profile of before there were such keys
  EXPECT_EQ(first_difference(to_json(small_plan()), other), "");
}

TEST(FirstDifference, SeesAKeyThatOneOfThemLacks) {
  Json other = to_json(small_plan());
  other["parallelism"]["future_axis"] = 2;
  EXPECT_EQ(first_difference(to_json(small_plan()), other),
            "parallelism.future_axis: null in the plan, 2 in the profile");
}

}  // namespace
}  // namespace estimator
