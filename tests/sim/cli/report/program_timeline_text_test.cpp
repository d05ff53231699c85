#include "sim/cli/report/program_timeline_text.h"

#include <gtest/gtest.h>

#include "sim/cli/page/step_picture.h"
#include "tests/estimator/cluster/small_program.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::PlayedRank;
using estimator::ProgramReplay;
using estimator::RankProfile;

/// A product, a collective beside it, an addition and a kernel: 10 seconds.
PlayedRank played_from(double begin) {
  const auto work = [&](int64_t event, double start, double end) {
    return estimator::PlayedWork{.event = event, .start = begin + start, .end = begin + end};
  };
  return {.iteration_start = begin,
          .iteration_end = begin + 10,
          .works = {work(0, 0, 4), work(1, 2, 6), work(4, 6, 8), work(5, 8, 10)}};
}

/// Replays the rank once for each number of `begins`, and has it begin its iteration then.
ProgramReplay replayed(const std::vector<RankProfile>& profiles,
                       const std::vector<double>& begins) {
  ProgramReplay replay(
      profiles,
      {.gpu = *estimator::find_gpu("h100-sxm"), .fabric = fabric_of(estimator::h100_cluster(1))});
  replay.played.clear();
  for (const double begin : begins) replay.played.push_back(played_from(begin));
  return replay;
}

std::vector<RankProfile> two_ranks() {
  std::vector<RankProfile> profiles = {estimator::small_program(), estimator::small_program()};
  profiles[1].rank = 1;
  profiles[1].program->communicators[0].rank = 1;
  return profiles;
}

constexpr const char* kLegend =
    "  F forward, R recompute, B backward, G reduction of gradients, O optimizer, c copies between "
    "host and GPU,\n  ~ communication, : less than half of the column, . nothing\n";

/// 15 seconds in 30 columns.
TEST(ProgramTimelineText, HasAllRanksOnOneClock) {
  const std::vector<RankProfile> profiles = two_ranks();
  EXPECT_EQ(program_timeline_text(replayed(profiles, {100, 105}), 66),
            std::string("\nThe step, 500.00 ms for each column\n"
                        "  rank     0 stream   0 |FFFFFFFF....FFFFFFFF          |  80 %\n"
                        "  rank     0 stream   1 |....~~~~~~~~........          |  40 %\n"
                        "  rank     1 stream   0 |          FFFFFFFF....FFFFFFFF|  80 %\n"
                        "  rank     1 stream   1 |          ....~~~~~~~~........|  40 %\n") +
                kLegend +
                "  Blank: the rank is in the step before or after this one. A step takes 10.00 s; "
                "from the first rank's begin of it to the last rank's end it is 15.00 s\n");
}

TEST(ProgramTimelineText, OfRanksThatBeginTogetherIsTheStep) {
  const std::vector<RankProfile> profiles = two_ranks();
  EXPECT_EQ(program_timeline_text(replayed(profiles, {100, 100}), 56),
            std::string("\nThe step, 500.00 ms for each column\n"
                        "  rank     0 stream   0 |FFFFFFFF....FFFFFFFF|  80 %\n"
                        "  rank     0 stream   1 |....~~~~~~~~........|  40 %\n"
                        "  rank     1 stream   0 |FFFFFFFF....FFFFFFFF|  80 %\n"
                        "  rank     1 stream   1 |....~~~~~~~~........|  40 %\n") +
                kLegend);
}

TEST(ProgramStepPicture, HasAllRanksOnOneClock) {
  const std::vector<RankProfile> profiles = two_ranks();
  const StepPicture drawn = step_picture(replayed(profiles, {100, 105}));
  EXPECT_EQ(drawn.busy.notes,
            std::vector<std::string>{"A step takes 10.00 s; from the first rank's begin of it to "
                                     "the last rank's end it is 15.00 s"});
  const Json picture = Json::parse(drawn.json);
  EXPECT_EQ(picture.at("seconds"), 15);
  EXPECT_EQ(picture.at("lines").at(0).at("slices").at(0), Json::parse(R"(["f",0,266667])"));
  EXPECT_EQ(picture.at("lines").at(2).at("slices").at(0), Json::parse(R"(["f",333333,266667])"));
}

TEST(ProgramStepPicture, OfRanksThatBeginTogetherHasNoNote) {
  const std::vector<RankProfile> profiles = two_ranks();
  const StepPicture drawn = step_picture(replayed(profiles, {100, 100}));
  EXPECT_TRUE(drawn.busy.notes.empty());
  EXPECT_EQ(Json::parse(drawn.json).at("seconds"), 10);
}

}  // namespace
}  // namespace sim
