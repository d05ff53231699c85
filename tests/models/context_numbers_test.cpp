// Ranks that split the sequence compute what one rank computes: they run here side by side, in
// threads, and hand each other real tensors.
#include <gtest/gtest.h>

#include "models/shard/context_chunks.h"
#include "tests/models/post_backend.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;

estimator::Plan plan_over(const Json& changes, const Json& parallelism, const char* attention) {
  Json all = changes;
  all["parallelism"] = parallelism;
  all["cluster"]["gpus_per_node"] = parallelism.value("context", 1);
  all["training"]["attention"] = attention;
  return exact_plan(all);
}

/// Every context rank of `plan` in a thread: the mean loss, and the gradients of each rank.
std::vector<Iteration> run_ranks(const estimator::Plan& plan) {
  const auto ranks = static_cast<int>(plan.parallelism.context);
  Post context_post, data_post;
  SilentObserver observer;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int rank = 0; rank < ranks; ++rank) {
    ProcessGroups groups;
    groups.context =
        std::make_shared<Communicator>(c10::make_intrusive<PostBackend>(context_post, rank, ranks));
    groups.data =
        std::make_shared<Communicator>(c10::make_intrusive<PostBackend>(data_post, rank, ranks));
    trainers.push_back(built_trainer(plan, {.context = rank}, groups, observer));
  }
  run_side_by_side(trainers);

  std::vector<Iteration> iterations;
  double loss = 0;
  for (auto& trainer : trainers) {
    loss += trainer->loss() / ranks;
    iterations.push_back({.gradients = gradients_of(*trainer)});
  }
  for (Iteration& iteration : iterations) iteration.loss = loss;
  return iterations;
}

struct Context {
  std::string name;
  Json parallelism;
  const char* attention;
  bool only_gpt = false;  ///< the Llama has two key/value heads
};

std::ostream& operator<<(std::ostream& out, const Context& context) { return out << context.name; }

class ContextNumbers : public testing::TestWithParam<Context> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    ContextNumbers,
    testing::Values(
        Context{"RingOfTwo", {{"context", 2}}, "flash"},
        Context{"RingOfTwoFused", {{"context", 2}}, "fused"},
        Context{"RingOfFour", {{"context", 4}}, "flash"},
        Context{"RingOfFourFused", {{"context", 4}}, "fused"},
        Context{"AllToAllOfTwo", {{"context", 2}, {"context_comm", "a2a"}}, "flash"},
        Context{"AllToAllOfTwoFused", {{"context", 2}, {"context_comm", "a2a"}}, "fused"},
        Context{"AllToAllOfFour", {{"context", 4}, {"context_comm", "a2a"}}, "flash", true},
        Context{"AllToAllOfFourFused", {{"context", 4}, {"context_comm", "a2a"}}, "fused", true}),
    [](const auto& instance) { return instance.param.name; });

void expect_on_all_ranks(const std::vector<Iteration>& ranks, const Iteration& expected) {
  for (const Iteration& actual : ranks) {
    EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
    ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
    for (const auto& [name, gradient] : expected.gradients) {
      EXPECT_LT(relative_difference(actual.gradients.at(name), gradient), 2e-5) << name;
    }
  }
}

TEST_P(ContextNumbers, AreThoseOfOneRank) {
  const Context& context = GetParam();
  for (const Json& family : {Json::object(), llama_changes()}) {
    if (context.only_gpt && !family.empty()) continue;
    expect_on_all_ranks(run_ranks(plan_over(family, context.parallelism, context.attention)),
                        run_iteration(small_plan(family)));
  }
}

// Each rank has the sinks of its heads, whose gradients all ranks gather.
TEST(ContextNumbers, OfWindowsAndSinksAreThoseOfOneRank) {
  Json family = gpt_oss_changes();
  for (const char* key :
       {"num_experts", "moe_ffn_hidden_size", "activation_func_clamp_value", "glu_linear_offset"}) {
    family["model"].erase(key);
  }
  family["model"]["activation"] = "swiglu";
  const Json parallelism = {{"context", 2}, {"context_comm", "a2a"}};
  expect_on_all_ranks(run_ranks(plan_over(family, parallelism, "fused")),
                      run_iteration(exact_plan(family)));
}

TEST_P(ContextNumbers, AreTheSameWhenTheyAreComputedTwice) {
  const Context& context = GetParam();
  Json selective = {{"training", {{"recompute", "selective"}}}};
  const auto recomputed = run_ranks(plan_over(selective, context.parallelism, context.attention));
  const auto kept = run_ranks(plan_over({}, context.parallelism, context.attention));
  for (std::size_t rank = 0; rank < kept.size(); ++rank) {
    for (const auto& [name, gradient] : kept[rank].gradients) {
      EXPECT_LT(relative_difference(recomputed[rank].gradients.at(name), gradient), 2e-5) << name;
    }
  }
}

TEST(ContextChunks, PairTheEarliestWithTheLatest) {
  EXPECT_EQ(chunks_by_rank(3), (std::vector<int64_t>{0, 5, 1, 4, 2, 3}));
}

}  // namespace
}  // namespace models
