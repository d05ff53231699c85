// What a replay says of ranks that wait for each other for ever.
#include <gmock/gmock.h>

#include "estimator/base/errors.h"
#include "estimator/replay/trace_replay.h"
#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string deadlock_of(const std::vector<TracedRank>& ranks) {
  std::vector<ReplayRank> played;
  for (const TracedRank& rank : ranks) played.push_back(rank.played());
  try {
    replay(played, kFreeHost);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(WaitingRanks, ThatComeWithDifferentSizesAreRefused) {
  TracedRank one(0);
  TracedRank other(1);
  for (TracedRank* rank : {&one, &other}) {
    rank->collective(0, rank->communicator("data", 2), 1);
    rank->profile.trace->works.back().bytes = rank == &one ? 400 : 800;
  }
  try {
    replay({one.played(), other.played()}, kFreeHost);
    FAIL() << "different sizes were not seen";
  } catch (const UserError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("rank 1: all_reduce of data, 800 bytes (call 1 of 1 in step 1, forward, in "
                  "model): 800 bytes; rank 0: 400 bytes"));
  }
  other.profile.trace->works.back().bytes = 400;
  EXPECT_THAT(replay({one.played(), other.played()}, kFreeHost), SizeIs(2));
}

TEST(WaitingRanks, ThatCallInDifferentOrderAreNamed) {
  std::vector<TracedRank> ranks = {TracedRank(0), TracedRank(1)};
  for (TracedRank& rank : ranks) {
    const int64_t data = rank.communicator("data", 2);
    const int64_t tensor = rank.communicator("tensor", 2);
    const bool is_first = rank.profile.rank == 0;
    rank.collective(0, is_first ? data : tensor, 1);
    rank.collective(0, is_first ? tensor : data, 1);
  }
  const std::string said = deadlock_of(ranks);
  EXPECT_THAT(said, HasSubstr("the ranks wait for each other for ever"));
  EXPECT_THAT(said,
              HasSubstr("rank 0: all_reduce of data, 0 bytes (call 1 of 1 in step 1, forward, in "
                        "model): rank 1 has not come to it\n"));
  EXPECT_THAT(said, HasSubstr("rank 1: all_reduce of tensor, 0 bytes (call 1"));
  EXPECT_THAT(said, HasSubstr("rank 0 has not come to it\n"));
}

TEST(WaitingRanks, NameAllThatHaveNotCome) {
  std::vector<TracedRank> ranks;
  for (int64_t number = 0; number < 12; ++number) {
    TracedRank& rank = ranks.emplace_back(number, 24);
    const int64_t data = rank.communicator("data", 12, 0, 1);
    if (number < 2) rank.collective(0, data, 1);
    rank.compute(0, 1);
  }
  EXPECT_THAT(deadlock_of(ranks),
              HasSubstr("ranks 2, 3, 4, 5, 6, 7, 8, 9 and 2 more have not come to it\n"));
}

/// Two stages of a pipeline whose ranks are not those of its members.
TEST(WaitingRanks, NameAReceiveThatNobodySends) {
  std::vector<TracedRank> stages = {TracedRank(1, 8), TracedRank(5, 8)};
  for (TracedRank& stage : stages) stage.communicator("pp", 2, 1, 4);
  stages[0].compute(0, 1);
  stages[1].messages(0, 0, 1, {{.is_send = false, .bytes = 16 << 20, .peer = 0}});
  stages[1].profile.trace->events.direction[0] = static_cast<int64_t>(Direction::kBackward);
  EXPECT_THAT(deadlock_of(stages),
              HasSubstr("rank 5: receive from rank 1 of pp, 16.00 MiB (call 1 of 1 in step 1, "
                        "backward, in model): rank 1 has not come to it\n"));
}

/// Three steps in which rank 0 sends twice and rank 1 receives once.
TEST(WaitingRanks, SayInWhichStepTheyAre) {
  std::vector<TracedRank> ranks = {TracedRank(0, 2), TracedRank(1, 2)};
  for (TracedRank& rank : ranks) {
    rank.communicator("pp", 2);
    const bool is_first = rank.profile.rank == 0;
    rank.messages(0, 0, 1, {{.is_send = is_first, .bytes = 8, .peer = 1 - rank.profile.rank}});
    if (is_first) rank.messages(0, 0, 1, {{.is_send = true, .bytes = 8, .peer = 1}});
  }
  const std::string said = deadlock_of(ranks);
  EXPECT_THAT(said, HasSubstr("rank 0: send to rank 1 of pp, 8 bytes (call 2 of 2 in step 2"));
}

/// The streams that wait for the sends say nothing new.
TEST(WaitingRanks, ThatBothSendFirstAreNamedByTheirSendsAlone) {
  std::vector<TracedRank> ranks = {TracedRank(0, 2), TracedRank(1, 2)};
  for (TracedRank& rank : ranks) {
    const int64_t peer = 1 - rank.profile.rank;
    rank.communicator("pp", 2);
    rank.messages(1, 0, 1, {{.is_send = true, .bytes = 8, .peer = peer}});
    rank.wait(0, rank.record(1));
    rank.messages(1, 0, 1, {{.is_send = false, .bytes = 8, .peer = peer}});
    rank.host_waits_for_stream(0);
  }
  const std::string said = deadlock_of(ranks);
  EXPECT_THAT(said, HasSubstr("rank 0: send to rank 1 of pp, 8 bytes (call 1 of 2 in step 1"));
  EXPECT_THAT(said, HasSubstr("rank 1: send to rank 0 of pp, 8 bytes (call 1 of 2 in step 1"));
  EXPECT_THAT(said, testing::Not(HasSubstr("stream")));
  EXPECT_THAT(said, testing::Not(HasSubstr("host waits")));
}

}  // namespace
}  // namespace estimator
