#include "estimator/program/program_trace_file.h"

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

  ProgramReplay replayed() const {
    return ProgramReplay(profiles_,
                         {.gpu = *find_gpu("h100-sxm"), .fabric = fabric_of(h100_cluster(1))});
  }
  ProgramTrace trace(std::size_t most_bytes = 50'000'000) const {
    return program_trace(replayed(), most_bytes);
  }
  void add_second_rank() {
    RankProfile second = small_program();
    second.rank = 1;
    second.program->communicators[0].rank = 1;
    profiles_.push_back(second);
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

/// Microseconds of the slices, or ends of arrows, of a rank that have this phase and name.
std::vector<double> times_of(const std::string& text,
                             int64_t rank,
                             const std::string& phase,
                             const std::string& name) {
  const Json document = Json::parse(text);
  std::vector<double> times;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("pid") == rank && event.at("ph") == phase && event.at("name") == name) {
      times.push_back(event.at("ts").get<double>());
    }
  }
  return times;
}

/// Rank 1 begins its step 2 seconds after rank 0; both are in the collective at the same time.
TEST_F(ProgramTraceFile, HasAllRanksOnOneClock) {
  add_second_rank();
  ProgramReplay replay = replayed();
  replay.played[0] = {
      .iteration_start = 10, .iteration_end = 16, .works = {{.event = 1, .start = 13, .end = 15}}};
  replay.played[1] = {
      .iteration_start = 12, .iteration_end = 18, .works = {{.event = 1, .start = 13, .end = 15}}};
  const std::string text = program_trace(replay).text;
  EXPECT_THAT(times_of(text, 0, "X", "all_reduce"), ElementsAre(3e6));
  EXPECT_THAT(times_of(text, 1, "X", "all_reduce"), ElementsAre(3e6));
}

/// Perfetto drops what lies before 0.
TEST_F(ProgramTraceFile, BeginsWithAWorkThatIsAheadOfItsStep) {
  ProgramReplay replay = replayed();
  replay.played[0] = {
      .iteration_start = 10,
      .iteration_end = 16,
      .works = {{.event = 1, .start = 9, .end = 11}, {.event = 4, .start = 12, .end = 16}}};
  const std::string text = program_trace(replay).text;
  EXPECT_THAT(times_of(text, 0, "X", "all_reduce"), ElementsAre(0));
  EXPECT_THAT(times_of(text, 0, "X", "aten::add"), ElementsAre(3e6));
}

/// A stage of two, which sends or receives twice.
RankProfile stage_with_messages(int64_t stage) {
  TracedRank rank(stage, 2);
  const int64_t pipeline = rank.communicator("pp", 2);
  for (int i = 0; i < 2; ++i) {
    rank.messages(1, pipeline, 0, {{.is_send = stage == 0, .bytes = 8 << 20, .peer = 1 - stage}});
  }
  RankProfile profile = small_program();
  profile.rank = stage;
  profile.world_size = 2;
  profile.trace = rank.profile.trace;
  profile.program->communicators = rank.profile.program->communicators;
  return profile;
}

TEST_F(ProgramTraceFile, DrawsAnArrowFromEachSendToItsReceive) {
  profiles_ = {stage_with_messages(0), stage_with_messages(1)};
  const std::string text = trace().text;
  const std::vector<double> sends = times_of(text, 0, "X", "send to rank 1");
  const std::vector<double> receives = times_of(text, 1, "X", "receive from rank 0");
  ASSERT_EQ(sends.size(), 2u);
  ASSERT_EQ(receives.size(), 2u);
  EXPECT_LT(sends[0], sends[1]);
  EXPECT_EQ(times_of(text, 0, "s", "message"), sends);
  EXPECT_EQ(times_of(text, 1, "f", "message"), receives);
}

TEST_F(ProgramTraceFile, SaysWithWhichRanksMessagesAre) {
  profiles_ = {stage_with_messages(0), stage_with_messages(1)};
  const Json document = Json::parse(trace().text);
  int64_t found = 0;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("ph") != "X" || !event.at("args").contains("sends_to")) continue;
    ++found;
    const bool is_first = event.at("pid") == 0;
    EXPECT_EQ(event.at("args").at("sends_to"), is_first ? Json({1}) : Json::array());
    EXPECT_EQ(event.at("args").at("receives_from"), is_first ? Json::array() : Json({0}));
  }
  EXPECT_EQ(found, 4);
}

TEST_F(ProgramTraceFile, LeavesOutRanksForWhichThereIsNoRoom) {
  add_second_rank();
  EXPECT_THAT(trace().left_out, testing::IsEmpty());
  const ProgramTrace small = trace(1000);
  EXPECT_THAT(small.left_out, ElementsAre(1));
  EXPECT_EQ(Json::parse(small.text).at("otherData").at("left_out_ranks"), Json::array({1}));
}

}  // namespace
}  // namespace estimator
