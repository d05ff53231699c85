#include "estimator/profile/rank_profile.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

std::string complaint(const Json& json) {
  return complaint_of([&] { read_rank_profile(json.dump(), "rank-00000.json"); });
}

TEST(RankProfile, ReadsBackAsItself) {
  const Plan plan = small_plan();
  RankProfile profile = profile_of(plan, 3);
  CollectiveCall call;
  call.kind = CollectiveKind::kReduceScatter;
  call.group = GroupKind::kDataContext;
  call.group_size = 8;
  profile.collectives = {collectives(Direction::kReduceGradients, call, 4)};
  profile.out_of_memory =
      OutOfMemoryRecord{.phase = "iteration_0.forward_backward", .message = "CUDA out of memory"};
  const std::string text = to_json(profile).dump();
  EXPECT_EQ(to_json(read_rank_profile(text, "x")).dump(), text);
}

TEST(RankProfile, OfAnotherVersionIsRefusedWithBothVersions) {
  Json json = to_json(profile_of(small_plan(), 0));
  json["schema_version"] = 99;
  EXPECT_NE(complaint(json).find("schema_version = 99, this tool reads 1"), std::string::npos);
}

TEST(RankProfile, IsNotAnyJson) {
  EXPECT_NE(complaint(Json::array()), "");
  EXPECT_NE(complaint({{"kind", "cluster_estimate"}}), "");
  EXPECT_NE(complaint({{"kind", 7}, {"schema_version", 1}}), "");
  EXPECT_NE(complaint({{"kind", "rank_profile"}, {"schema_version", 1}}), "");
}

TEST(RankProfile, NamesTheFieldThatIsWrong) {
  Json json = to_json(profile_of(small_plan(), 0));
  json["peak"]["allocated_bytes"] = "many";
  EXPECT_NE(complaint(json).find("peak.allocated_bytes = \"many\""), std::string::npos);
}

TEST(RankProfile, FilesSortByRank) {
  EXPECT_EQ(profile_file_name(17), "rank-00017.json");
  EXPECT_EQ(profile_file_name(123456), "rank-123456.json");
}

}  // namespace
}  // namespace estimator
