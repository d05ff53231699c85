#include "estimator/program/program_ranks.h"

#include <gmock/gmock.h>

#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RankProfile data_rank(int64_t rank, double work = 1) {
  TracedRank traced(rank, 16);
  traced.compute(0, 1);
  traced.profile.trace->works.back().bytes = static_cast<int64_t>(1000 * work);
  traced.collective(0, traced.communicator("dp", 16), 1);
  return traced.profile;
}

/// Of four stages with four data ranks each: neighbours send to each other.
RankProfile stage_rank(int64_t rank) {
  TracedRank traced(rank, 16);
  const int64_t stage = rank / 4;
  const int64_t pipeline = traced.communicator("pp", 4, rank % 4, 4);
  traced.compute(0, 1);
  traced.profile.trace->works.back().bytes = 1000 + stage;
  if (stage > 0)
    traced.messages(0, pipeline, 1, {{.is_send = false, .bytes = 8, .peer = stage - 1}});
  if (stage < 3)
    traced.messages(0, pipeline, 1, {{.is_send = true, .bytes = 8, .peer = stage + 1}});
  return traced.profile;
}

std::vector<int64_t> next(const std::vector<RankProfile>& profiles) {
  return ranks_to_run_next(profiles, 16, 64);
}

constexpr int64_t kDrawn = 9;  // of 16

TEST(ProgramRanks, OfDataRanksAreTheFirstAndTwoProbes) {
  ASSERT_EQ(drawn_rank(16), kDrawn);
  EXPECT_THAT(next({}), ElementsAre(0, kDrawn, 15));
  EXPECT_THAT(ranks_to_run_next({}, 1, 64), ElementsAre(0));
  EXPECT_THAT(ranks_to_run_next({}, 2, 64), ElementsAre(0, 1));
  EXPECT_THAT(next({data_rank(0), data_rank(kDrawn), data_rank(15)}), IsEmpty());
}

TEST(ProgramRanks, GoOnWhereAProbeIsLikeNoOther) {
  EXPECT_THAT(next({data_rank(0), data_rank(kDrawn), data_rank(15, 2)}), ElementsAre(8));
  EXPECT_THAT(next({data_rank(0), data_rank(kDrawn, 2), data_rank(15)}), ElementsAre(8));
  EXPECT_THAT(next({data_rank(0), data_rank(8), data_rank(kDrawn), data_rank(15, 2)}), IsEmpty());
}

TEST(ProgramRanks, OfAPipelineAreItsStagesAndTwoProbes) {
  std::vector<RankProfile> profiles = {stage_rank(0), stage_rank(kDrawn), stage_rank(15)};
  EXPECT_THAT(next(profiles), ElementsAre(4, 8, 12));
  for (const int64_t rank : {4, 8, 12}) profiles.push_back(stage_rank(rank));
  EXPECT_THAT(next(profiles), IsEmpty());
  std::string why;
  EXPECT_THAT(ranks_to_replay(profiles, why), SizeIs(4)) << "the probe's neighbours were not run";
  EXPECT_EQ(why, "");
}

TEST(ProgramRanks, OfPartsOfPipelinesAreLeftOutBesideAWholeOne) {
  std::vector<RankProfile> profiles;
  for (const int64_t rank : {0, 9, 15, 5, 1, 11, 7, 3}) profiles.push_back(stage_rank(rank));
  std::string why;
  std::vector<int64_t> replayed;
  for (const RankProfile* rank : ranks_to_replay(profiles, why)) replayed.push_back(rank->rank);
  EXPECT_THAT(replayed, ElementsAre(15, 11, 7, 3)) << "9 lacks 13, 5 then lacks 9, 1 then lacks 5";
  EXPECT_EQ(why, "");
}

TEST(ProgramRanks, OfOneStageSaysWhichOthersToRun) {
  std::string why;
  EXPECT_THAT(ranks_to_replay({stage_rank(5)}, why), IsEmpty());
  EXPECT_THAT(why, HasSubstr("rank 5 waits for messages of rank 1, which was not run"));
  EXPECT_THAT(why, HasSubstr("--ranks 1,5,9,13, or --ranks auto"));
}

TEST(ProgramRanks, WithoutATraceSayWhy) {
  RankProfile untraced = data_rank(3);
  untraced.trace.reset();
  untraced.program->optimizer_steps = 1;
  std::string why;
  EXPECT_THAT(ranks_to_replay({untraced}, why), IsEmpty());
  EXPECT_THAT(
      why, AllOf(HasSubstr("rank 3 has no trace"), HasSubstr("(--steps 2), and this one took 1")));
}

TEST(ProgramRanks, OfWhichAPartOfAnIterationWasRecordedSayWhy) {
  RankProfile part = data_rank(3);
  part.program->recorded_iteration = 5;
  part.program->recorded_with = {kWithoutBackward};
  std::string why;
  EXPECT_THAT(ranks_to_replay({data_rank(0), part}, why), IsEmpty());
  EXPECT_THAT(why, HasSubstr("no backward ran in iteration 5 of rank 3, which was recorded"));
}

TEST(ProgramRanks, AreNoMoreThanWereAllowed) {
  EXPECT_THAT(ranks_to_run_next({stage_rank(0)}, 16, 2), ElementsAre(4));
  EXPECT_THAT(ranks_to_run_next({stage_rank(0)}, 16, 1), IsEmpty());
}

TEST(AreAlike, RanksThatDifferInMemoryOrWorkAreNot) {
  EXPECT_TRUE(are_alike(data_rank(0), data_rank(9)));
  EXPECT_FALSE(are_alike(data_rank(0), data_rank(9, 3)));
  RankProfile fuller = data_rank(9);
  fuller.peak.allocated_bytes += 512;
  EXPECT_FALSE(are_alike(data_rank(0), fuller));
}

}  // namespace
}  // namespace estimator
