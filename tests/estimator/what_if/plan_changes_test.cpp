#include "estimator/what_if/plan_changes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

PlanSpec changed_spec(const Json& changes = Json::object()) {
  Json tree = small_tree();
  tree.merge_patch(changes);
  return {.tree = tree, .context = {}};
}

/// All steps of all kinds that save memory.
std::vector<PlanChange> changes_of(const PlanSpec& spec) {
  std::vector<PlanChange> all;
  for (ChangeLadder& ladder : memory_saving_changes(spec)) {
    for (PlanChange& change : ladder) all.push_back(std::move(change));
  }
  return all;
}

std::optional<PlanChange> find_change(const PlanSpec& spec, const std::string& text) {
  for (PlanChange& change : changes_of(spec)) {
    if (change.text == text) return std::move(change);
  }
  return std::nullopt;
}

bool offers(const PlanSpec& spec, const std::string& text) {
  return find_change(spec, text).has_value();
}

Plan plan_of(const PlanSpec& spec, const std::string& text) {
  const auto change = find_change(spec, text);
  return change ? change->plan : Plan{};
}

const Json kTwoSamples = {{"training", {{"micro_batch_size", 2}, {"global_batch_size", 16}}}};

TEST(PlanChanges, KeepTheWorldAndTheGlobalBatch) {
  for (const Json& given : {kTwoSamples, Json{{"training", {{"global_batch_size", nullptr}}}}}) {
    const PlanSpec spec = changed_spec(given);
    const Plan plan = resolve_plan(spec);
    for (const PlanChange& change : changes_of(spec)) {
      EXPECT_EQ(change.plan.world_size(), plan.world_size()) << change.text;
      EXPECT_EQ(change.plan.global_batch_size(), plan.global_batch_size()) << change.text;
    }
  }
}

TEST(PlanChanges, AreWhatTheirTextSays) {
  const PlanSpec spec = changed_spec(kTwoSamples);
  EXPECT_EQ(plan_of(spec, "full recompute").training.recompute, Recompute::kFull);
  EXPECT_EQ(plan_of(spec, "micro-batch 1").training.micro_batch_size, 1);
  EXPECT_EQ(plan_of(spec, "ZeRO stage 1").parallelism.zero_stage, 1);
  EXPECT_EQ(plan_of(spec, "tensor 2 (data 4)").parallelism.tensor, 2);
  EXPECT_EQ(plan_of(spec, "tensor 2 (data 4)").data_parallel_size(), 4);
  EXPECT_EQ(plan_of(spec, "context 2 (data 4)").parallelism.context, 2);
  EXPECT_EQ(plan_of(spec, "pipeline 2 (data 4)").parallelism.pipeline, 2);
}

TEST(PlanChanges, DivideTheModelAsFarAsThereAreRanks) {
  const PlanSpec spec = changed_spec(kTwoSamples);
  EXPECT_EQ(plan_of(spec, "tensor 8 (data 1)").parallelism.tensor, 8);
  EXPECT_EQ(plan_of(spec, "pipeline 4 (data 2)").parallelism.pipeline, 4);
  EXPECT_FALSE(offers(spec, "tensor 16 (data 0)"));
}

TEST(PlanChanges, AreWhatTheirEditsMean) {
  const PlanSpec spec = changed_spec(kTwoSamples);
  const std::vector<PlanChange> changes = changes_of(spec);
  ASSERT_FALSE(changes.empty());
  for (const PlanChange& change : changes) {
    EXPECT_EQ(to_json(resolve_plan(spec.with(change.edits))), to_json(change.plan)) << change.text;
  }
}

// What is "auto" follows the change; of what was given only that is said anew which stands in the
// way.
TEST(PlanChanges, SayNoMoreThanTheyHaveTo) {
  const auto edits = [](const PlanSpec& spec, const std::string& text) {
    return find_change(spec, text).value().edits;
  };
  const PlanEdits tensor = {{"parallelism.tensor", 2}};
  EXPECT_EQ(edits(changed_spec(), "tensor 2 (data 4)"), tensor);

  const Json no_batch = {{"training", {{"global_batch_size", nullptr}}}};
  EXPECT_EQ(edits(changed_spec(no_batch), "tensor 2 (data 4)"),
            merged(tensor, {{"training.global_batch_size", 8}}));

  const PlanSpec accumulated = changed_spec(
      {{"training", {{"global_batch_size", nullptr}, {"gradient_accumulation_steps", 3}}}});
  EXPECT_EQ(edits(accumulated, "tensor 2 (data 4)"),
            merged(tensor, {{"training.gradient_accumulation_steps", 6}}));
  EXPECT_TRUE(edits(accumulated, "full recompute").size() == 1);

  const PlanSpec data = changed_spec({{"parallelism", {{"data", 8}}}});
  EXPECT_EQ(edits(data, "tensor 2 (data 4)"), merged(tensor, {{"parallelism.data", "auto"}}));

  const PlanSpec world_from_data =
      changed_spec({{"parallelism", {{"data", 8}}}, {"cluster", {{"nodes", nullptr}}}});
  EXPECT_EQ(edits(world_from_data, "tensor 2 (data 4)"), merged(tensor, {{"parallelism.data", 4}}));

  const PlanSpec layers =
      changed_spec({{"parallelism", {{"pipeline", 2}, {"layers_per_stage", {3, 5}}}}});
  const PlanEdits even = {{"parallelism.pipeline", 4},
                          {"parallelism.layers_per_stage", Json::array()}};
  EXPECT_EQ(edits(layers, "pipeline 4 (data 2)"), even);
}

TEST(PlanChanges, ToTensorRanksOfLatentAttentionSplitTheSequenceToo) {
  const PlanSpec spec =
      changed_spec({{"model", {{"multi_latent_attention", true}, {"position_embedding", "rope"}}}});
  const std::string text = "tensor 2 (data 4) and sequence parallelism";
  ASSERT_TRUE(offers(spec, text));
  EXPECT_TRUE(plan_of(spec, text).parallelism.sequence_parallel);
}

TEST(PlanChanges, AreNotOfferedWhereThePlanHasThemAlready) {
  const PlanSpec spec = changed_spec({{"parallelism", {{"zero_stage", 1}}},
                                      {"training", {{"recompute", "full"}}},
                                      {"memory", {{"allocator", "expandable_segments:True"}}}});
  EXPECT_FALSE(offers(spec, "full recompute"));
  EXPECT_FALSE(offers(spec, "ZeRO stage 1"));
  EXPECT_FALSE(offers(spec, "expandable segments"));
  EXPECT_FALSE(offers(spec, "flash attention"));
  EXPECT_FALSE(offers(spec, "bf16"));
}

TEST(PlanChanges, TryFlashAttentionAnd16BitsWhereTheGpuHasThem) {
  EXPECT_EQ(plan_of(changed_spec({{"training", {{"attention", "unfused"}}}}), "flash attention")
                .training.attention,
            Attention::kFlash);
  const Json fp32 = {{"training", {{"dtype", "fp32"}}}};
  const Plan bf16 = plan_of(changed_spec(fp32), "bf16");
  EXPECT_EQ(bf16.training.dtype, Dtype::kBf16);
  EXPECT_EQ(bf16.training.attention, Attention::kFused);  // as it was left to the framework
  EXPECT_FALSE(offers(changed_spec(fp32), "flash attention"));
  Json old = fp32;
  old["cluster"]["gpu"] = "v100";
  EXPECT_EQ(plan_of(changed_spec(old), "fp16").training.dtype, Dtype::kFp16);
  EXPECT_FALSE(offers(changed_spec({{"training", {{"attention", "unfused"}, {"dtype", "fp16"}}},
                                    {"cluster", {{"gpu", "v100"}}}}),
                      "flash attention"));
}

// Of flash attention selective recompute saves memory where it is TorchTitan's alone.
TEST(PlanChanges, TrySelectiveRecomputeWhereItHelps) {
  const auto with = [](const char* framework, const char* attention) {
    return changed_spec({{"training", {{"framework", framework}, {"attention", attention}}}});
  };
  EXPECT_TRUE(offers(with("plain", "unfused"), "selective recompute"));
  EXPECT_FALSE(offers(with("plain", "flash"), "selective recompute"));
  EXPECT_TRUE(offers(with("torchtitan", "flash"), "selective recompute"));
}

// Of 16 layers in one chunk.
TEST(PlanChanges, RecomputeSomeLayersBeforeAll) {
  const auto with = [](const Json& training) {
    return changed_spec({{"model", {{"num_layers", 16}}}, {"training", Json(training)}});
  };
  const PlanSpec none = with({{"framework", "megatron-lm"}});
  const Plan eighth = plan_of(none, "full recompute of 2 of the 16 layers of a chunk");
  EXPECT_EQ(eighth.training.recompute_method, RecomputeMethod::kBlock);
  EXPECT_EQ(eighth.training.recompute_num_layers, 2);
  EXPECT_TRUE(offers(none, "full recompute of 8 of the 16 layers of a chunk"));
  EXPECT_FALSE(
      offers(with({{"framework", "plain"}}), "full recompute of 2 of the 16 layers of a chunk"));
  const PlanSpec quarter = with({{"framework", "megatron-lm"},
                                 {"recompute", "full"},
                                 {"recompute_method", "block"},
                                 {"recompute_num_layers", 4}});
  EXPECT_FALSE(offers(quarter, "full recompute of 2 of the 16 layers of a chunk"));
  EXPECT_TRUE(offers(quarter, "full recompute of 8 of the 16 layers of a chunk"));
  EXPECT_EQ(plan_of(quarter, "full recompute").training.recompute_method,
            RecomputeMethod::kUniform);
}

TEST(PlanChanges, TakeBackWhatIsSaidOfSelectiveRecompute) {
  const PlanSpec spec = changed_spec(
      {{"training",
        {{"framework", "torchtitan"}, {"recompute", "selective"}, {"selective_ac_option", "2"}}}});
  const PlanEdits expected = {{"training.recompute", "full"},
                              {"training.selective_ac_option", "op"}};
  ASSERT_TRUE(offers(spec, "full recompute"));
  EXPECT_EQ(find_change(spec, "full recompute")->edits, expected);
}

// 96 samples on 8 data ranks: 12 for each.
TEST(PlanChanges, TryEveryMicroBatchThatDividesTheGlobalBatch) {
  const PlanSpec spec =
      changed_spec({{"training", {{"micro_batch_size", 6}, {"global_batch_size", 96}}}});
  std::vector<std::string> smaller, larger;
  for (const PlanChange& change : smaller_micro_batches(spec)) smaller.push_back(change.text);
  EXPECT_EQ(smaller,
            (std::vector<std::string>{
                "micro-batch 4", "micro-batch 3", "micro-batch 2", "micro-batch 1"}));
  for (const ChangeLadder& ladder : time_saving_changes(spec)) larger.push_back(ladder[0].text);
  EXPECT_NE(std::find(larger.begin(), larger.end(), "micro-batch 12"), larger.end());
}

/// What is offered to save time.
std::vector<std::string> faster(const Json& parallelism) {
  std::vector<std::string> texts;
  for (const ChangeLadder& ladder :
       time_saving_changes(changed_spec({{"parallelism", parallelism}}))) {
    texts.push_back(ladder[0].text);
  }
  return texts;
}

// Stages that do not interleave would gather their parameters one after the other.
TEST(PlanChanges, OverlapTheGathersOfStagesOnlyWhereTheyGatherTogether) {
  const std::string at_once = "gathers of parameters at the end of the step, by all stages at once";
  const auto offers_at_once = [&](const Json& parallelism) {
    const std::vector<std::string> texts = faster(parallelism);
    return std::find(texts.begin(), texts.end(), at_once) != texts.end();
  };
  Json stages = {{"pipeline", 2},
                 {"data", nullptr},
                 {"zero_stage", 1},
                 {"overlap_grad_reduce", true},
                 {"overlap_param_gather", true}};
  EXPECT_TRUE(offers_at_once(stages));
  stages["overlap_param_gather"] = false;
  EXPECT_FALSE(offers_at_once(stages));
  const std::vector<std::string> texts = faster(stages);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "overlap with the data ranks' communication"),
            0);
  EXPECT_FALSE(offers_at_once(
      {{"zero_stage", 1}, {"overlap_grad_reduce", true}, {"overlap_param_gather", true}}));
}

TEST(PlanChanges, DivideExpertsFurtherWhereThereAreRanksForIt) {
  const Json experts = {{"num_experts", 8}, {"add_bias_linear", false}};
  const PlanSpec spec = changed_spec({{"model", experts}});
  EXPECT_EQ(plan_of(spec, "expert 2").parallelism.expert, 2);
  EXPECT_EQ(plan_of(spec, "expert 8").parallelism.expert, 8);
  EXPECT_FALSE(offers(spec, "expert 16"));
  EXPECT_FALSE(
      offers(changed_spec({{"model", experts}, {"parallelism", {{"expert", 8}}}}), "expert 16"));
  EXPECT_FALSE(offers(changed_spec(), "expert 2"));
}

// 4 expert ranks of 2 tensor ranks are all 8; of 4 they would be 16.
TEST(PlanChanges, LeaveExpertsWholeWhereTheirTensorRanksAreTooMany) {
  const PlanSpec spec =
      changed_spec({{"model", {{"num_experts", 8}, {"add_bias_linear", false}}},
                    {"parallelism", {{"tensor", 2}, {"expert", 4}, {"sequence_parallel", true}}}});
  EXPECT_FALSE(offers(spec, "tensor 4 (data 2)"));
  EXPECT_EQ(plan_of(spec, "tensor 4 (data 2) and expert tensor 1").expert_tensor_size(), 1);
}

TEST(PlanChanges, KeepTheOtherAllocatorSettings) {
  const PlanSpec spec = changed_spec({{"memory", {{"allocator", "max_split_size_mb:512"}}}});
  EXPECT_EQ(plan_of(spec, "expandable segments").memory.allocator,
            "max_split_size_mb:512,expandable_segments:True");
}

TEST(PlanChanges, ThatTheRulesForbidAreLeftOut) {
  // 9 heads do not divide by 2; 8 layers do not divide by 16 stages.
  const PlanSpec odd = changed_spec({{"model", {{"num_attention_heads", 9}, {"hidden_size", 72}}}});
  EXPECT_FALSE(offers(odd, "tensor 2 (data 4)"));
  const PlanSpec local = changed_spec({{"training", {{"transformer_impl", "local"}}}});
  EXPECT_FALSE(offers(local, "context 2 (data 4)"));
  const PlanSpec deep = changed_spec({{"cluster", {{"nodes", 2}}},
                                      {"parallelism", {{"pipeline", 8}}},
                                      {"training", {{"global_batch_size", 16}}}});
  EXPECT_FALSE(offers(deep, "pipeline 16 (data 1)"));
}

TEST(PlanChanges, OffloadTheOptimizerWhereMegatronCan) {
  const std::string offload = "optimizer offload";
  const Plan offloaded = plan_of(changed_spec(), offload);
  EXPECT_TRUE(offloaded.training.optimizer_cpu_offload);
  EXPECT_EQ(offloaded.parallelism.zero_stage, 1);
  const PlanSpec sharded = changed_spec({{"parallelism", {{"zero_stage", 1}}}});
  ASSERT_TRUE(offers(sharded, offload));
  EXPECT_FALSE(offers(sharded.with(find_change(sharded, offload)->edits), offload));
  EXPECT_FALSE(offers(sharded.with({{"training.framework", "nanotron"}}), offload));
}

TEST(PlanChanges, SequenceParallelismNeedsTensorParallelism) {
  EXPECT_FALSE(offers(changed_spec(), "sequence parallelism"));
  EXPECT_TRUE(offers(changed_spec({{"parallelism", {{"tensor", 2}}}}), "sequence parallelism"));
}

}  // namespace
}  // namespace estimator
