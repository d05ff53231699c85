#include "estimator/cluster/program_trace_file.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "estimator/base/fields.h"
#include "tests/estimator/cluster/small_program.h"

namespace estimator {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

class ProgramTraceFile : public testing::Test {
 protected:
  std::vector<RankProfile> profiles_ = {small_program()};

  ProgramTrace trace(std::size_t most_bytes = 50'000'000) const {
    return program_trace(
        ProgramReplay(profiles_,
                      {.gpu = *find_gpu("h100-sxm"), .fabric = fabric_of(h100_cluster(1))}),
        most_bytes);
  }
  /// Names of the slices of each track.
  std::map<std::string, std::vector<std::string>> slices() const {
    const Json events = Json::parse(trace().text).at("traceEvents");
    std::map<int64_t, std::string> tracks;
    for (const Json& event : events) {
      if (event.at("ph") == "M" && event.at("name") == "thread_name") {
        tracks[event.at("tid").get<int64_t>()] = event.at("args").at("name");
      }
    }
    std::map<std::string, std::vector<std::string>> found;
    for (const Json& event : events) {
      if (event.at("ph") != "X") continue;
      found[tracks.at(event.at("tid").get<int64_t>())].push_back(event.at("name"));
    }
    return found;
  }
};

TEST_F(ProgramTraceFile, HasComputationByStreamAndCommunicationByGroup) {
  const auto found = slices();
  EXPECT_THAT(found.at("stream 0"),
              ElementsAre("product 4096 x 4096 x 4096", "aten::add", "own_kernel"));
  EXPECT_THAT(found.at("NCCL, dp of 8 ranks"), ElementsAre("all_reduce"));
  EXPECT_EQ(found.count("stream 1"), 0u) << "nothing but NCCL runs there";
}

TEST_F(ProgramTraceFile, SaysOfEachWorkWhoAskedForIt) {
  const Json document = Json::parse(trace().text);
  int64_t found = 0;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("name") != "aten::add") continue;
    ++found;
    EXPECT_EQ(event.at("args").at("kernel"), "add<float>");
    EXPECT_EQ(event.at("args").at("module"), "model");
    EXPECT_EQ(event.at("args").at("direction"), "forward");
    EXPECT_EQ(event.at("args").at("stream"), 0);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(ProgramTraceFile, HasSpansOfModulesWithNumbersAtTheirNames) {
  Trace& trace = *profiles_[0].trace;
  trace.modules = {"layers.0.mlp", "layers.0", "layers.1.mlp"};
  const std::vector<int64_t> launches = {0, 4, 5};  // on stream 0
  for (std::size_t i = 0; i < launches.size(); ++i) {
    trace.events.module[static_cast<std::size_t>(launches[i])] = static_cast<int64_t>(i);
  }
  EXPECT_THAT(
      slices().at("modules"),
      UnorderedElementsAre("forward", "layers.0", "layers.0.mlp", "layers.1", "layers.1.mlp"));
}

TEST_F(ProgramTraceFile, CountsTheMemoryThatModulesHadAllocated) {
  profiles_[0].modules = {{.path = "model", .forward_peak_bytes = int64_t{3} << 30}};
  const Json document = Json::parse(trace().text);
  std::vector<double> values;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("ph") == "C") values.push_back(event.at("args").at("value").get<double>());
  }
  EXPECT_THAT(values, ElementsAre(3.0));
}

TEST_F(ProgramTraceFile, LeavesOutRanksForWhichThereIsNoRoom) {
  RankProfile second = small_program();
  second.rank = 1;
  second.program->communicators[0].rank = 1;
  profiles_.push_back(second);
  EXPECT_THAT(trace().left_out, testing::IsEmpty());
  const ProgramTrace small = trace(1000);
  EXPECT_THAT(small.left_out, ElementsAre(1));
  EXPECT_EQ(Json::parse(small.text).at("otherData").at("left_out_ranks"), Json::array({1}));
}

}  // namespace
}  // namespace estimator
