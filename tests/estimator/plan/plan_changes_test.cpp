#include "estimator/plan/plan_changes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

std::vector<std::string> texts(const Plan& plan) {
  std::vector<std::string> all;
  for (const PlanChange& change : memory_saving_changes(plan)) all.push_back(change.text);
  return all;
}

bool offers(const Plan& plan, const std::string& text) {
  const auto all = texts(plan);
  return std::find(all.begin(), all.end(), text) != all.end();
}

const Plan& plan_of(const std::vector<PlanChange>& changes, const std::string& text) {
  return std::find_if(changes.begin(),
                      changes.end(),
                      [&](const PlanChange& change) { return change.text == text; })
      ->plan;
}

TEST(PlanChanges, KeepTheWorldAndTheGlobalBatch) {
  const Plan plan =
      small_plan({{"training", {{"micro_batch_size", 2}, {"global_batch_size", 16}}}});
  for (const PlanChange& change : memory_saving_changes(plan)) {
    EXPECT_EQ(change.plan.world_size(), plan.world_size()) << change.text;
    EXPECT_EQ(change.plan.global_batch_size(), plan.global_batch_size()) << change.text;
  }
}

TEST(PlanChanges, AreWhatTheirTextSays) {
  const Plan plan =
      small_plan({{"training", {{"micro_batch_size", 2}, {"global_batch_size", 16}}}});
  const auto changes = memory_saving_changes(plan);
  EXPECT_EQ(plan_of(changes, "full recompute").training.recompute, Recompute::kFull);
  EXPECT_EQ(plan_of(changes, "micro-batch 1").training.micro_batch_size, 1);
  EXPECT_EQ(plan_of(changes, "ZeRO stage 1").parallelism.zero_stage, 1);
  EXPECT_EQ(plan_of(changes, "tensor 2 (data 4)").parallelism.tensor, 2);
  EXPECT_EQ(plan_of(changes, "tensor 2 (data 4)").data_parallel_size(), 4);
  EXPECT_EQ(plan_of(changes, "context 2 (data 4)").parallelism.context, 2);
  EXPECT_EQ(plan_of(changes, "pipeline 2 (data 4)").parallelism.pipeline, 2);
}

TEST(PlanChanges, ToTensorRanksOfLatentAttentionSplitTheSequenceToo) {
  const Plan plan =
      small_plan({{"model", {{"multi_latent_attention", true}, {"position_embedding", "rope"}}}});
  const std::string text = "tensor 2 (data 4) and sequence parallelism";
  ASSERT_TRUE(offers(plan, text));
  EXPECT_TRUE(plan_of(memory_saving_changes(plan), text).parallelism.sequence_parallel);
}

TEST(PlanChanges, AreNotOfferedWhereThePlanHasThemAlready) {
  const Plan plan = small_plan({{"parallelism", {{"zero_stage", 1}}},
                                {"training", {{"recompute", "full"}}},
                                {"memory", {{"allocator", "expandable_segments:True"}}}});
  EXPECT_FALSE(offers(plan, "full recompute"));
  EXPECT_FALSE(offers(plan, "ZeRO stage 1"));
  for (const std::string& text : texts(plan)) {
    EXPECT_EQ(text.find("expandable"), std::string::npos);
  }
}

TEST(PlanChanges, DivideExpertsFurtherWhereThereAreRanksForIt) {
  const Json experts = {{"model", {{"num_experts", 8}, {"add_bias_linear", false}}}};
  const Plan plan = small_plan(experts);
  const auto changes = memory_saving_changes(plan);
  ASSERT_TRUE(offers(plan, "expert 2"));
  EXPECT_EQ(plan_of(changes, "expert 2").parallelism.expert, 2);
  EXPECT_FALSE(offers(small_plan({{"model", experts["model"]}, {"parallelism", {{"expert", 8}}}}),
                      "expert 16"));
  EXPECT_FALSE(offers(small_plan(), "expert 2"));
}

TEST(PlanChanges, KeepTheOtherAllocatorSettings) {
  const Plan plan = small_plan({{"memory", {{"allocator", "max_split_size_mb:512"}}}});
  EXPECT_EQ(memory_saving_changes(plan).front().plan.memory.allocator,
            "max_split_size_mb:512,expandable_segments:True");
}

TEST(PlanChanges, ThatTheRulesForbidAreLeftOut) {
  // 9 heads do not divide by 2; 8 layers do not divide by 16 stages.
  const Plan odd = small_plan({{"model", {{"num_attention_heads", 9}, {"hidden_size", 72}}}});
  EXPECT_FALSE(offers(odd, "tensor 2 (data 4)"));
  const Plan local = small_plan({{"training", {{"transformer_impl", "local"}}}});
  EXPECT_FALSE(offers(local, "context 2 (data 4)"));
  const Plan deep = small_plan({{"cluster", {{"nodes", 2}}},
                                {"parallelism", {{"pipeline", 8}}},
                                {"training", {{"global_batch_size", 16}}}});
  EXPECT_FALSE(offers(deep, "pipeline 16 (data 1)"));
}

TEST(PlanChanges, OffloadTheOptimizerWhereMegatronCan) {
  const std::string flags = "--optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d)";
  const std::string offload = "optimizer offload (" + flags;
  const std::string with_zero = "optimizer offload (--use-distributed-optimizer " + flags;
  const auto changes = memory_saving_changes(small_plan());
  ASSERT_TRUE(offers(small_plan(), with_zero));
  EXPECT_TRUE(plan_of(changes, with_zero).training.optimizer_cpu_offload);
  EXPECT_EQ(plan_of(changes, with_zero).parallelism.zero_stage, 1);
  const Plan sharded = small_plan({{"parallelism", {{"zero_stage", 1}}}});
  EXPECT_TRUE(offers(sharded, offload));
  EXPECT_FALSE(offers(plan_of(changes, with_zero), offload));
  const Plan nanotron =
      small_plan({{"parallelism", {{"zero_stage", 1}}}, {"training", {{"dialect", "nanotron"}}}});
  EXPECT_FALSE(offers(nanotron, offload));
}

TEST(PlanChanges, SequenceParallelismNeedsTensorParallelism) {
  EXPECT_FALSE(offers(small_plan(), "sequence parallelism"));
  EXPECT_TRUE(offers(small_plan({{"parallelism", {{"tensor", 2}}}}), "sequence parallelism"));
}

}  // namespace
}  // namespace estimator
