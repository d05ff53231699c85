// Memory files on the command line: what `run` writes, and what `memory` reads.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "estimator/base/fields.h"
#include "estimator/profile/peak_snapshot.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class MemoryCommand : public OnerankProgram {
 protected:
  /// A weight, and the activations of two layers.
  std::string write_snapshot() {
    estimator::PeakSnapshot snapshot;
    using enum estimator::MemoryCategory;
    snapshot.allocations = {
        {.category = kParameter, .bytes = 1 << 20, .requested_bytes = 1 << 20, .module = "head"},
        {.category = kActivation,
         .bytes = 2 << 20,
         .requested_bytes = 2 << 20,
         .module = "layers.0.mlp.linear_fc1"},
        {.category = kActivation,
         .bytes = 5 << 20,
         .requested_bytes = 4 << 20,
         .module = "layers.1.mlp.linear_fc1",
         .made_the_peak = true}};
    snapshot.header.allocations = 3;
    snapshot.header.peak = {.allocated_bytes = 8 << 20,
                            .reserved_bytes = 10 << 20,
                            .phase = "iteration_1.forward_backward"};
    snapshot.header.peak.categories.emplace();
    (*snapshot.header.peak.categories)[kParameter] = 1 << 20;
    (*snapshot.header.peak.categories)[kActivation] = 7 << 20;
    std::ofstream(path("peak.jsonl")) << estimator::to_json_lines(snapshot);
    return path("peak.jsonl");
  }
};

TEST_F(MemoryCommand, GroupsTheAllocationsOfAPeakLargestFirst) {
  const ProgramResult result = run({"memory", write_snapshot(), "--by", "module", "--depth", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              HasSubstr("module         MiB   share  asked for  allocations\n"
                        "layers.*.mlp  7.00  87.5 %       6.00            2\n"
                        "head          1.00  12.5 %       1.00            1\n"));
}

TEST_F(MemoryCommand, ShowsAsManyRowsAsAskedForAndSaysHowManyAreLeft) {
  const ProgramResult result = run({"memory", write_snapshot(), "--by", "module", "--top", "1"});
  EXPECT_THAT(result.output, HasSubstr("and 1 more (--top 2)\n"));
}

TEST_F(MemoryCommand, SaysWhatAnotherDocumentIs) {
  const std::string estimate = write("e.json", "{\n \"kind\": \"cluster_estimate\"\n}\n");
  EXPECT_THAT(run({"memory", estimate}).error,
              HasSubstr("this is a cluster_estimate, not a peak_snapshot"));
}

TEST_F(MemoryCommand, PrintsGroupsAsADocument) {
  const ProgramResult result = run({"memory", write_snapshot(), "--by", "module", "--json"});
  const auto memory = estimator::Json::parse(result.output);
  EXPECT_EQ(memory["kind"], "memory_groups");
  EXPECT_EQ(memory["schema_version"], 1);
  EXPECT_EQ(memory["by"], "module");
  EXPECT_EQ(memory["groups"][0]["name"], "layers.*.mlp.linear_fc1");
  EXPECT_EQ(memory["groups"][0]["bytes"], 7 << 20);
  EXPECT_EQ(memory["header"]["kind"], "peak_snapshot");
}

TEST_F(MemoryCommand, SuggestsTheNearestGrouping) {
  const ProgramResult result = run({"memory", write_snapshot(), "--by", "modul"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("did you mean module?"));
}

TEST_F(MemoryCommand, RefusesADamagedFileWithItsLine) {
  const std::string file = write_snapshot();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 30);
  const ProgramResult result = run({"memory", file});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.error, HasSubstr("peak.jsonl, line 4 is damaged"));
}

TEST_F(MemoryCommand, RefusesAProfile) {
  run(small_plan({"run"}, {"--output", path("profile.json")}));
  const ProgramResult result = run({"memory", path("profile.json")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("is not a peak snapshot"));
}

class MemoryFiles : public OnerankProgram {};

TEST_F(MemoryFiles, OfASingleRankGoWhereTheUserSays) {
  const ProgramResult result =
      run(small_plan({"run"}, {"--peak-snapshot", path("p"), "--memory-timeline", path("t.csv")}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(read("p"), "--peak-snapshot of rank 0\n");
  EXPECT_EQ(read("t.csv"), "--memory-timeline of rank 0\n");
}

TEST_F(MemoryFiles, OfSeveralRanksHaveTheRankInTheirNames) {
  const ProgramResult result =
      run(small_plan({"estimate"}, {"--pp", "2", "--memory-history", path("h.pickle")}));
  EXPECT_EQ(read("h-rank-00000.pickle"), "--memory-history of rank 0\n") << result.error;
  EXPECT_EQ(read("h-rank-00004.pickle"), "--memory-history of rank 4\n");
  EXPECT_FALSE(std::filesystem::exists(path("h.pickle")));
}

TEST_F(MemoryFiles, AreRefusedBeforeTheRunWhereTheyCannotBeWritten) {
  const ProgramResult result =
      run(small_plan({"run"}, {"--peak-snapshot", path("missing/peak.jsonl")}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--peak-snapshot"));
}

TEST_F(MemoryFiles, NeedAttribution) {
  const ProgramResult result =
      run(small_plan({"run"}, {"--memory-timeline", path("t.csv"), "--no-attribution"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--memory-timeline with --no-attribution"));
}

TEST_F(MemoryFiles, OfTheCpuHaveNoHistory) {
  const ProgramResult result =
      run(small_plan({"run"}, {"--memory-history", path("h.pickle"), "--device", "cpu"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, StartsWith("error: the device cpu has no caching allocator"));
}

TEST_F(MemoryFiles, ModulesAreATableOfTheProfile) {
  const ProgramResult result = run(small_plan({"run"}, {"--depth", "0"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--depth = 0"));
  EXPECT_THAT(run(small_plan({"run"}, {"--modules"})).output,
              HasSubstr("module (MiB)  modules  parameters"));
}

}  // namespace
}  // namespace sim
