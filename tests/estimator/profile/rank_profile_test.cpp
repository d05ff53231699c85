#include "estimator/profile/rank_profile.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

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

Json good_profile() {
  RankProfile profile = profile_of(small_plan(), 0);
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.group_size = 8;
  call.bytes = 1024;
  profile.collectives = {collectives(Direction::kReduceGradients, call, 4)};
  profile.peak.categories.emplace()[MemoryCategory::kParameter] = profile.peak.allocated_bytes;
  profile.modules = {{.path = "layers.0"}};
  return to_json(profile);
}

struct Damage {
  const char* name;
  std::function<void(Json&)> change;
  std::string complaint;
};

TEST(RankProfile, ThatNoRunCanLeaveIsRefused) {
  ASSERT_EQ(complaint(good_profile()), "");
  for (const Damage& damage : std::vector<Damage>{
           {"no peak", [](Json& j) { j.erase("peak"); }, "missing\n  rank-00000.json: peak"},
           {"no operators", [](Json& j) { j.erase("operators"); }, "rank-00000.json: operators"},
           {"no collectives",
            [](Json& j) { j.erase("collectives"); },
            "missing\n  rank-00000.json: collectives"},
           {"no bytes",
            [](Json& j) { j["peak"].erase("reserved_bytes"); },
            "missing\n  rank-00000.json: peak.reserved_bytes"},
           {"negative bytes",
            [](Json& j) { j["peak"]["reserved_bytes"] = -1e12; },
            "peak.reserved_bytes = -1"},
           {"negative count",
            [](Json& j) { j["operators"][0]["count"] = -4; },
            "operators[0].count = -4"},
           {"negative collective",
            [](Json& j) { j["collectives"][0]["bytes"] = -1024; },
            "collectives[0].bytes = -1024"},
           {"a receiver without a sender",
            [](Json& j) { j["collectives"][0]["kind"] = "recv"; },
            "collectives[0].peer = -1"},
           {"a sender outside of its group",
            [](Json& j) { j["collectives"][0]["peer"] = 8; },
            "collectives[0].peer = 8"},
           {"negative memory of a module",
            [](Json& j) { j["modules"][0]["activation_bytes_at_peak"] = -512; },
            "modules[0].activation_bytes_at_peak = -512"},
           {"absurd work",
            [](Json& j) { j["operators"][0]["flops"] = 1e308; },
            "operators[0].flops = 1e+308"},
           {"nothing computed",
            [](Json& j) { j["operators"] = Json::array(); },
            "the shard computed nothing"},
           {"no phase", [](Json& j) { j["phases"] = Json::array(); }, "no phase was run"},
           {"no plan", [](Json& j) { j["plan"] = Json::object(); }, "no plan is there"},
           {"more allocated than reserved",
            [](Json& j) { j["phases"][0]["peak"]["reserved_bytes"] = 512; },
            "phases[0].peak.allocated_bytes"},
           {"another peak",
            [](Json& j) { j["peak"]["reserved_bytes"] = j["device"]["total_bytes"]; },
            "not the largest of the phases'"},
           {"categories",
            [](Json& j) { j["peak"]["categories"]["gradient"] = 512; },
            "do not add up to the allocated peak"},
           {"a GPU of nothing",
            [](Json& j) { j["device"]["total_bytes"] = 0; },
            "device.total_bytes = 0"},
           {"more than the GPU has",
            [](Json& j) { j["device"]["total_bytes"] = 1024; },
            "more is reserved than the device has"},
           {"outside of its world", [](Json& j) { j["rank"] = 8; }, "not in its world"}}) {
    Json json = good_profile();
    damage.change(json);
    const std::string text = complaint(json);
    EXPECT_NE(text.find(damage.complaint), std::string::npos) << damage.name << ":\n" << text;
  }
}

/// As `onerank exec` leaves it.
Json program_profile() {
  RankProfile profile = profile_of(small_plan(), 0);
  profile.plan = Json::object();
  profile.operators.clear();
  profile.program = ProgramRecord{.command = {"python", "train.py"}};
  profile.program->communicators = {{.name = "default_pg", .size = 8, .rank = 0}};
  return to_json(profile);
}

TEST(ProgramProfile, ThatNoRunCanLeaveIsRefused) {
  ASSERT_EQ(complaint(program_profile()), "");
  for (const Damage& damage : std::vector<Damage>{
           {"no GPUs", [](Json& p) { p["gpus_per_node"] = 0; }, "program.gpus_per_node = 0"},
           {"negative GPUs", [](Json& p) { p["gpus_per_node"] = -8; }, "gpus_per_node = -8"},
           {"GPUs of a city", [](Json& p) { p["gpus_per_node"] = 9e15; }, "gpus_per_node = 9"},
           {"GPUs untold", [](Json& p) { p.erase("gpus_per_node"); }, "a key is missing"},
           {"more outside than any GPU has",
            [](Json& p) { p["outside_bytes"] = 9e15; },
            "program.outside_bytes = 9"},
           {"group of more than all",
            [](Json& p) { p["communicators"][0]["size"] = 9; },
            "larger than the world"},
           {"no member",
            [](Json& p) { p["communicators"][0]["rank"] = 8; },
            "no member of its own group"},
           {"empty group",
            [](Json& p) { p["communicators"][0]["size"] = 0; },
            "communicators[0].size = 0"}}) {
    Json json = program_profile();
    damage.change(json["program"]);
    const std::string text = complaint(json);
    EXPECT_NE(text.find(damage.complaint), std::string::npos) << damage.name << ":\n" << text;
  }
}

TEST(RankProfile, FilesSortByRank) {
  EXPECT_EQ(profile_file_name(17), "rank-00017.json");
  EXPECT_EQ(profile_file_name(123456), "rank-123456.json");
}

}  // namespace
}  // namespace estimator
