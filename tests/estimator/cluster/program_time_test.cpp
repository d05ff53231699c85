#include "estimator/cluster/program_time.h"

#include <gmock/gmock.h>

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

TEST_F(ProgramTimeTest, ListsWhatIsNotPriced) {
  const ProgramTime time = program_time(replayed_);
  ASSERT_EQ(time.not_priced.size(), 1u);
  EXPECT_EQ(time.not_priced[0].name, "own_kernel");
  EXPECT_TRUE(time.priced_by_memory.empty());
}

TEST_F(ProgramTimeTest, OfAProfileWithoutATraceSaysWhatToDo) {
  RankProfile untraced = small_program();
  untraced.trace.reset();
  EXPECT_THAT(lacks_time({untraced}).value_or(""), HasSubstr("--steps 2"));
  EXPECT_FALSE(lacks_time({small_program()}).has_value());
}

}  // namespace
}  // namespace estimator
