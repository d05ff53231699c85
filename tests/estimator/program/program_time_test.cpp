#include "estimator/program/program_time.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/estimator/cluster/small_program.h"

namespace estimator {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

class ProgramTimeTest : public testing::Test {
 protected:
  const Gpu& gpu_ = *find_gpu("h100-sxm");
  const std::vector<RankProfile> profiles_ = {small_program()};
  const ProgramReplay replayed_{profiles_, {.gpu = gpu_, .fabric = fabric_of(h100_cluster(1))}};
};

TEST_F(ProgramTimeTest, IsTheSumOfItsParts) {
  const ProgramTime time = program_time(replayed_);
  ASSERT_EQ(time.ranks.size(), 1u);
  const RankTime& rank = time.ranks[0];
  EXPECT_THAT(rank.computation_seconds + rank.exposed_communication_seconds + rank.idle_seconds,
              DoubleNear(time.iteration_seconds, 1e-12));
  EXPECT_GT(rank.exposed_communication_seconds, 0);
  EXPECT_EQ(time.flops, 2.0 * 4096 * 4096 * 4096);
  EXPECT_DOUBLE_EQ(time.hfu, time.flops / time.iteration_seconds / 989.4e12);
  EXPECT_EQ(time.model_flops, time.flops) << "nothing is run again";
  EXPECT_EQ(time.mfu_note, "");
  ASSERT_EQ(rank.terms.size(), 3u);
  EXPECT_EQ(rank.terms[0].name, "matrix products");
  EXPECT_EQ(rank.terms[1].launches, 2);
  EXPECT_EQ(rank.terms[2].name, "communication");
}

TracedRank rank_of_products() {
  TracedRank busy(0, 1);
  for (int i = 0; i < 20; ++i) {
    busy.compute(0, 0);
    busy.profile.trace->works.back() = {.kind = WorkKind::kProduct,
                                        .name = "cublas",
                                        .dtype = "BFloat16",
                                        .result_dtype = "BFloat16",
                                        .shapes = {{1, 8192, 8192, 8192}},
                                        .flops = 2.0 * 8192 * 8192 * 8192};
  }
  return busy;
}

// Products without a pause need more than the board gives; beside a longer collective they do not.
TEST_F(ProgramTimeTest, SlowsArithmeticDownToTheBoardsPower) {
  EXPECT_EQ(program_time(replayed_).ranks[0].board.speed, 1);
  const std::vector<RankProfile> profiles = {rank_of_products().profile};
  const auto rate_on = [&](const char* gpu, double& speed) {
    const ProgramTime time = program_time(
        ProgramReplay(profiles, {.gpu = *find_gpu(gpu), .fabric = fabric_of(h100_cluster(1))}));
    const BoardUse& board = time.ranks[0].board;
    speed = board.speed;
    EXPECT_TRUE(board.limit_watts == 0 || std::abs(board.watts - board.limit_watts) < 5);
    return time.flops / time.iteration_seconds / 1e12;
  };
  double at_700 = 0, at_500 = 0, unknown = 0;
  EXPECT_NEAR(rate_on("h100-sxm", at_700), 670, 30);
  EXPECT_NEAR(rate_on("h100-sxm-96", at_500), 560, 30);
  EXPECT_LT(at_500, at_700);
  rate_on("a100-sxm-80", unknown);
  EXPECT_EQ(unknown, 1);
}

// 20 products take 33 ms. What a board does not take in a second it cannot take a second later.
TEST_F(ProgramTimeTest, AWaitOfSecondsSparesProductsNothing) {
  const auto speed_with = [&](double seconds) {
    TracedRank rank = rank_of_products();
    constexpr double kBytesOfASecond = 28 * 3.71e9;
    rank.host_waits_for_device();
    rank.host_updates(static_cast<int64_t>(seconds * kBytesOfASecond), true);
    const std::vector<RankProfile> profiles = {rank.profile};
    const ProgramReplay replay(profiles, {.gpu = gpu_, .fabric = fabric_of(h100_cluster(1))});
    EXPECT_GT(replay.iteration_seconds(), seconds);
    return program_time(replay).ranks[0].board.speed;
  };
  const double without = speed_with(0);
  EXPECT_LT(without, 0.95);
  EXPECT_EQ(speed_with(0.03), 1);
  EXPECT_NEAR(speed_with(2), without, 0.01);
}

TEST_F(ProgramTimeTest, ListsWhatIsNotPriced) {
  const ProgramTime time = program_time(replayed_);
  ASSERT_EQ(time.not_priced.size(), 1u);
  EXPECT_EQ(time.not_priced[0].name, "own_kernel");
  EXPECT_TRUE(time.priced_by_memory.empty());
}

// Eight ranks share the CPUs, which update 3.71e9 parameters a second.
TEST_F(ProgramTimeTest, OfAnOptimizerOnTheCpuIsAdded) {
  TracedRank rank(0, 8);
  rank.profile = small_program();
  rank.host_waits_for_device();
  rank.host_updates(28 * int64_t{3'710'000}, true);
  const std::vector<RankProfile> profiles = {rank.profile};
  const ProgramTime time =
      program_time(ProgramReplay(profiles, {.gpu = gpu_, .fabric = fabric_of(h100_cluster(1))}));
  const WorkTerm& updates = time.ranks[0].terms.back();
  EXPECT_EQ(updates.name, "optimizer on the CPU");
  EXPECT_DOUBLE_EQ(updates.seconds, 8e-3);
  const ProgramTime without = program_time(replayed_);
  EXPECT_GT(time.iteration_seconds, 8e-3 + 0.9 * without.iteration_seconds);
  EXPECT_DOUBLE_EQ(time.ranks[0].host_seconds, without.ranks[0].host_seconds);
  EXPECT_EQ(time.rates.size(), without.rates.size() + 2) << "where the rate is from";
}

TEST_F(ProgramTimeTest, OfAProfileWithoutATraceSaysWhatToDo) {
  RankProfile untraced = small_program();
  untraced.trace.reset();
  EXPECT_THAT(lacks_time({untraced}).value_or(""), HasSubstr("--steps 2"));
  EXPECT_FALSE(lacks_time({small_program()}).has_value());
}

}  // namespace
}  // namespace estimator
