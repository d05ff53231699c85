#include "estimator/program/program_tokens.h"

#include <gmock/gmock.h>

#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

using testing::HasSubstr;

constexpr int64_t kTokensOfSample = 512, kEmbeddingWidth = 64;

/// Launches of one work.
void launch_work(TracedRank& rank, const TraceWork& work, int64_t times) {
  std::vector<int64_t>& items = rank.profile.trace->events.item;
  rank.compute(0, 1);
  rank.profile.trace->works.back() = work;
  const int64_t item = items.back();
  for (int64_t i = 1; i < times; ++i) {
    rank.compute(0, 1);
    items.back() = item;
  }
}

/// The backward of an embedding, as PyTorch runs it: some kernels once, one of them eight times.
void read_tokens(TracedRank& rank, int64_t batch, int64_t calls) {
  TraceWork work = {
      .name = "grad_weight",
      .operator_name = "aten::embedding_dense_backward",
      .shapes = {{batch, kTokensOfSample, kEmbeddingWidth}, {batch, kTokensOfSample}}};
  launch_work(rank, work, calls);
  work.name = "radix_sort";
  launch_work(rank, work, 8 * calls);
}

std::optional<FoundTokens> found_in(const TracedRank& rank) {
  return found_tokens({&rank.profile});
}

TEST(ProgramTokens, AreTheIndicesOfTheEmbeddingInEveryMicroBatch) {
  TracedRank rank(0, 8);
  read_tokens(rank, 2, 3);
  const auto found = found_in(rank);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->per_rank, 3 * 2 * kTokensOfSample);
  EXPECT_EQ(found->replicas, 8);
  EXPECT_EQ(found->per_step(), 8 * 3 * 2 * kTokensOfSample);
  EXPECT_EQ(
      found->how,
      "3,072 of rank 0, by the integer inputs of its embedding, x 8 with tokens of their own");
}

TEST(ProgramTokens, OfARankThatJoinedNobodyAreItsOwn) {
  TracedRank rank(0, 8);
  read_tokens(rank, 2, 3);
  rank.profile.program->joins_world = false;
  const auto found = found_in(rank);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->per_step(), 3 * 2 * kTokensOfSample);
  EXPECT_EQ(found->how,
            "3,072 of rank 0 alone, by the integer inputs of its embedding: it joined no process "
            "group");
  EXPECT_FALSE(trains_alone(TracedRank(0, 8).profile));
}

TEST(ProgramTokens, AreSharedByRanksThatSumActivationsInForward) {
  TracedRank rank(0, 8);
  read_tokens(rank, 2, 1);
  const int64_t tensor = rank.communicator("tp", 4);
  const int64_t data = rank.communicator("dp", 2, 0, 4);
  rank.collective(0, tensor, 1);
  rank.profile.trace->works.back().dtype = "BFloat16";
  rank.profile.trace->works.back().bytes = 2 * 2 * kTokensOfSample * kEmbeddingWidth;
  rank.collective(0, data, 1);  // a loss, for the log
  rank.profile.trace->works.back().dtype = "Float";
  rank.profile.trace->works.back().bytes = 4;
  rank.collective(0, data, 1);  // gradients, which are summed over all that have tokens
  rank.profile.trace->works.back().dtype = "BFloat16";
  rank.profile.trace->works.back().bytes = 2 * 2 * kTokensOfSample * kEmbeddingWidth;
  rank.profile.trace->events.direction.back() = static_cast<int64_t>(Direction::kBackward);
  const auto found = found_in(rank);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->replicas, 2);
  EXPECT_THAT(found->how, HasSubstr("4 ranks share them, which sum activations"));
}

// As PyTorch's tutorial averages gradients: the program calls all-reduce itself, after the
// backward.
TEST(ProgramTokens, AreNotSharedByRanksThatSumGradientsThemselves) {
  TracedRank rank(0, 8);
  read_tokens(rank, 2, 1);
  rank.collective(0, rank.communicator("default_pg", 8), 1);
  rank.profile.trace->works.back().dtype = "BFloat16";
  rank.profile.trace->works.back().bytes = 2 * 2 * kTokensOfSample * kEmbeddingWidth;
  EXPECT_EQ(found_in(rank)->replicas, 1) << "in forward";
  rank.profile.trace->events.direction.back() = static_cast<int64_t>(Direction::kReduceGradients);
  EXPECT_EQ(found_in(rank)->replicas, 8);
}

TEST(ProgramTokens, AreSharedByRanksOfAGroupToWhichTheyAreBroadcast) {
  for (const int64_t size : {2, 8}) {  // to all 8: a buffer of DDP's
    TracedRank rank(0, 8);
    read_tokens(rank, 2, 3);
    rank.collective(0, rank.communicator("group", size), 1);
    TraceWork& broadcast = rank.profile.trace->works.back();
    broadcast.name = "broadcast";
    broadcast.dtype = "Long";
    broadcast.bytes = 8 * 2 * kTokensOfSample;
    const auto found = found_in(rank);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->replicas, size == 2 ? 4 : 8);
  }
}

TEST(ProgramTokens, AreSharedByTheStagesOfAPipeline) {
  TracedRank first(0, 8), last(4, 8);
  for (TracedRank* rank : {&first, &last}) {
    const int64_t stages = rank->communicator("pp", 2, 0, 4);
    const bool sends = rank == &first;
    rank->messages(0, stages, 1, {{.is_send = sends, .bytes = 8, .peer = sends ? 1 : 0}});
  }
  read_tokens(first, 1, 2);
  const auto found = found_tokens({&last.profile, &first.profile});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 0);
  EXPECT_EQ(found->per_step(), 4 * 2 * kTokensOfSample);
  EXPECT_THAT(found->how, HasSubstr("2 ranks share them as stages"));
}

TEST(ProgramTokens, AreElseTheLabelsOfTheLoss) {
  TracedRank rank(0, 2);
  rank.compute(0, 1);
  rank.profile.trace->works.back() = {
      .name = "nll", .operator_name = "aten::nll_loss_forward", .shapes = {{1000, 32000}, {1000}}};
  const auto found = found_in(rank);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->per_step(), 2000);
  EXPECT_THAT(found->how, HasSubstr("the labels of its loss"));
}

/// With labels for so many tokens, and so many integers given to the model.
std::optional<FoundTokens> found_beside(int64_t embedding, int64_t labels, int64_t inputs) {
  TracedRank rank(0, 1);
  launch_work(rank,
              {.name = "grad_weight",
               .operator_name = "aten::embedding_dense_backward",
               .shapes = {{embedding, kEmbeddingWidth}, {embedding}}},
              1);
  launch_work(
      rank,
      {.name = "nll", .operator_name = "aten::nll_loss_forward", .shapes = {{labels, 9}, {labels}}},
      1);
  rank.profile.trace->inputs = {{.model = 0, .integers = inputs, .calls = 1}};
  return found_in(rank);
}

// peft's prompt tuning: the labels have places for the 20 virtual tokens of each sequence.
TEST(ProgramTokens, OfAPromptAreThoseOfTheModelWhoseWordsAreFrozen) {
  const auto prompt = found_beside(20, 4 * (1024 + 20), 4 * 1024);
  ASSERT_TRUE(prompt.has_value());
  EXPECT_EQ(prompt->per_rank, 4 * 1024);
  EXPECT_THAT(prompt->how, HasSubstr("the integer inputs of its model"));
  EXPECT_EQ(found_beside(20, 4 * 1024, 8 * 1024)->per_rank, 4 * 1024) << "the fewer of both";
  EXPECT_EQ(found_beside(2048, 4096, 4096)->per_rank, 2048) << "a second loss predicts one further";
  EXPECT_EQ(found_beside(20, 4096, 16)->per_rank, 20);
}

// As of LoRA, whose embedding is frozen, and of compiled programs. A loss of its own is called with
// as many labels.
TEST(ProgramTokens, AreElseTheIntegersThatTheModelIsGiven) {
  TracedRank rank(0, 2);
  rank.compute(0, 1);
  rank.profile.trace->inputs = {{.model = 0, .integers = 2 * kTokensOfSample, .calls = 3},
                                {.model = 0, .integers = kTokensOfSample, .calls = 1},
                                {.model = 1, .integers = 2 * kTokensOfSample, .calls = 3}};
  const auto found = found_in(rank);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->per_rank, 7 * kTokensOfSample);
  EXPECT_EQ(found->per_step(), 2 * 7 * kTokensOfSample);
  EXPECT_THAT(found->how, HasSubstr("the integer inputs of its model"));
}

// As of DLRM, whose model is given the ids of its features and the offset of each bag.
TEST(ProgramTokens, AreNotTheFeaturesOfARecommender) {
  TracedRank rank(0, 2);
  rank.profile.trace->inputs = {{.model = 0, .integers = 32 * 2048, .calls = 1}};
  launch_work(rank, {.name = "bags", .operator_name = "aten::_embedding_bag"}, 1);
  EXPECT_FALSE(found_in(rank).has_value());
}

TEST(ProgramTokens, OfProgramsThatShowNoneAreNotKnown) {
  TracedRank rank(0, 2);
  rank.compute(0, 1);
  EXPECT_FALSE(found_in(rank).has_value());
}

TEST(ProgramTokens, OfPositionsAreNotCounted) {
  TracedRank rank(0, 1);
  rank.profile.trace->modules = {"model", "embedding", "positions"};
  const auto add = [&](int64_t module, std::vector<int64_t> indices) {
    rank.compute(0, 1);
    rank.profile.trace->works.back() = {.name = "grad_weight",
                                        .operator_name = "aten::embedding_dense_backward",
                                        .shapes = {{1, 1, kEmbeddingWidth}, std::move(indices)}};
    rank.profile.trace->events.module.back() = module;
  };
  add(1, {4, kTokensOfSample});
  add(2, {1, kTokensOfSample});
  const auto found = found_in(rank);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->per_rank, 4 * kTokensOfSample);
}

}  // namespace
}  // namespace estimator
