// A pipeline computes what one rank computes: its stages run here side by side, in threads, and
// hand each other real tensors.
#include <gtest/gtest.h>

#include "tests/models/post_backend.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;

/// Every stage of `plan` in a thread; losses and gradients of all of them together.
Iteration run_pipeline(const estimator::Plan& plan) {
  const auto stages = static_cast<int>(plan.parallelism.pipeline);
  Post post, embedding_post;
  SilentObserver observer;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int stage = 0; stage < stages; ++stage) {
    ProcessGroups groups;
    groups.pipeline =
        std::make_shared<Communicator>(c10::make_intrusive<PostBackend>(post, stage, stages));
    if (stage == 0 || stage == stages - 1) {
      groups.embedding = std::make_shared<Communicator>(
          c10::make_intrusive<PostBackend>(embedding_post, stage == 0 ? 0 : 1, 2));
    }
    trainers.push_back(built_trainer(plan, {.pipeline = stage}, groups, observer));
  }
  run_side_by_side(trainers);

  Iteration iteration;
  for (auto& trainer : trainers) {
    iteration.loss += trainer->loss();
    for (const auto& [name, gradient] : gradients_of(*trainer))
      iteration.gradients[name] = gradient;
  }
  return iteration;
}

Json four_layers(Json changes, int64_t micro_batches) {
  changes["model"]["num_layers"] = 4;
  changes["training"]["micro_batch_size"] = 1;
  changes["training"]["global_batch_size"] = micro_batches;
  return changes;
}

struct Pipeline {
  std::string name;
  Json parallelism;
  int64_t micro_batches;
};

class PipelineNumbers : public testing::TestWithParam<Pipeline> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    PipelineNumbers,
    testing::Values(
        Pipeline{"OneForwardOneBackward", {{"pipeline", 2}}, 4},
        Pipeline{"Gpipe", {{"pipeline", 2}, {"pipeline_schedule", "gpipe"}}, 4},
        Pipeline{"Interleaved", {{"pipeline", 2}, {"virtual_stages", 2}}, 4},
        Pipeline{"InterleavedInAllWarmUp", {{"pipeline", 2}, {"virtual_stages", 2}}, 2},
        Pipeline{"InterleavedInUnequalGroups",
                 {{"pipeline", 2},
                  {"virtual_stages", 2},
                  {"microbatch_group_size_per_virtual_stage", 3}},
                 5},
        Pipeline{"DeferredWeightGradients",
                 {{"pipeline", 2}, {"defer_embedding_wgrad_compute", true}},
                 4},
        Pipeline{"SomeDeferredWeightGradients",
                 {{"pipeline", 2},
                  {"virtual_stages", 2},
                  {"defer_embedding_wgrad_compute", true},
                  {"wgrad_deferral_limit", 3}},
                 4},
        Pipeline{"InterleavedWithOverlappedFlush",
                 {{"pipeline", 3},
                  {"virtual_stages", 2},
                  {"layers_per_stage", {1, 1, 1, 1, 0, 0}},
                  {"overlap_p2p_warmup_flush", true}},
                 6},
        Pipeline{"InterleavedInAllWarmUpWithOverlappedFlush",
                 {{"pipeline", 2}, {"virtual_stages", 2}, {"overlap_p2p_warmup_flush", true}},
                 2},
        // The first piece has the embedding alone, the last one the head, as in Llama 3 405B.
        Pipeline{"InterleavedWithEmptyEnds",
                 {{"pipeline", 3}, {"virtual_stages", 2}, {"layers_per_stage", {0, 1, 1, 1, 1, 0}}},
                 3}),
    [](const auto& instance) { return instance.param.name; });

TEST_P(PipelineNumbers, AreThoseOfOneRank) {
  for (const Json& family : {Json::object(), llama_changes()}) {
    Json changes = four_layers(family, GetParam().micro_batches);
    const Iteration expected = run_iteration(small_plan(changes));
    changes["parallelism"] = GetParam().parallelism;
    changes["cluster"]["gpus_per_node"] = GetParam().parallelism["pipeline"];
    const Iteration actual = run_pipeline(small_plan(changes));
    EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
    ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
    for (const auto& [name, gradient] : expected.gradients) {
      EXPECT_LT(relative_difference(actual.gradients.at(name), gradient), 2e-5) << name;
    }
  }
}

/// A model whose second layer has no experts, and which predicts a further token.
Json with_experts(Json changes) {
  changes.merge_patch({{"model",
                        {{"num_experts", 4},
                         {"moe_ffn_hidden_size", 16},
                         {"moe_shared_expert_intermediate_size", 24},
                         {"moe_layer_freq", {1, 0, 1, 1}},
                         {"mtp_num_layers", 1}}}});
  return changes;
}

/// Megatron-LM combines forwards and backwards only of layers that expert ranks divide; here one
/// rank has all experts, so that numbers can be compared.
estimator::Plan combined(estimator::Plan plan, bool delayed) {
  plan.parallelism.overlap_moe_expert_parallel_comm = true;
  plan.parallelism.delay_wgrad_compute = delayed;
  plan.parallelism.ep_overlap_early_attn_memory_release = delayed;
  return plan;
}

TEST(PipelineNumbers, OfForwardsCombinedWithBackwardsAreThoseOfOneRank) {
  const Json recomputes[] = {
      {{"recompute", "none"}},
      {{"recompute", "selective"},
       {"recompute_modules", {"core_attn", "layernorm", "moe_act", "shared_experts", "mlp"}}}};
  for (const Json& recompute : recomputes) {
    Json changes = with_experts(four_layers(llama_changes(), 4));
    changes["training"].merge_patch(recompute);
    const estimator::Plan plan = small_plan(changes);
    const Iteration expected = run_iteration(plan);
    changes["parallelism"] = {{"pipeline", 2}, {"virtual_stages", 2}};
    changes["cluster"]["gpus_per_node"] = 2;
    for (const bool delayed : {false, true}) {
      for (const Iteration& actual : {run_iteration(combined(plan, delayed)),
                                      run_pipeline(combined(small_plan(changes), delayed))}) {
        SCOPED_TRACE(recompute.dump());
        EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
        ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
        for (const auto& [name, gradient] : expected.gradients) {
          EXPECT_LT(relative_difference(actual.gradients.at(name), gradient), 2e-5) << name;
        }
      }
    }
  }
}

/// TorchTitan's stages, whose layers are dealt unevenly: with whole parameters, and under FSDP2
/// with units that stay gathered, or are freed after each forward. The last layout gathers and
/// frees whole chunks.
TEST(PipelineNumbers, OfTorchPipelinesAreThoseOfOneRank) {
  const Json layouts[] = {{{"pipeline", 2}},
                          {{"pipeline", 3}},
                          {{"pipeline", 2}, {"pipeline_schedule", "gpipe"}},
                          {{"pipeline", 2}, {"virtual_stages", 2}},
                          {{"pipeline", 2}, {"virtual_stages", 4}}};
  for (const int64_t zero_stage : {0, 2, 3}) {
    for (Json layout : layouts) {
      layout["zero_stage"] = zero_stage;
      SCOPED_TRACE(layout.dump());
      const bool interleaves = layout.contains("virtual_stages");
      Json changes = four_layers(llama_changes(), interleaves ? 4 : 5);  // whole rounds
      changes["model"]["num_layers"] = 6;
      changes["training"]["framework"] = "torchtitan";
      const Iteration expected = run_iteration(small_plan(changes));
      changes["parallelism"] = layout;
      changes["cluster"]["gpus_per_node"] = layout["pipeline"];
      const Iteration actual = run_pipeline(small_plan(changes));
      EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
      ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
      for (const auto& [name, gradient] : expected.gradients) {
        EXPECT_LT(relative_difference(actual.gradients.at(name), gradient), 2e-5) << name;
      }
    }
  }
}

/// More tokens are predicted on the last stage, whose embedding is a copy of the first one's; in
/// the last layout the final norm is on the stage before.
TEST(PipelineNumbers, WithPredictionsAreThoseOfOneRank) {
  const Json layouts[] = {{{"pipeline", 2}},
                          {{"pipeline", 2}, {"virtual_stages", 2}},
                          {{"pipeline", 3}, {"layers_per_stage", {2, 2, 0}}}};
  for (const bool tied : {false, true}) {
    for (const Json& layout : layouts) {
      SCOPED_TRACE(layout.dump() + (tied ? ", tied" : ""));
      Json changes = four_layers(llama_changes(), 4);
      changes["model"]["mtp_num_layers"] = 2;
      changes["model"]["tie_embeddings"] = tied;
      const Iteration expected = run_iteration(small_plan(changes));
      changes["parallelism"] = layout;
      changes["cluster"]["gpus_per_node"] = layout["pipeline"];
      const Iteration actual = run_pipeline(small_plan(changes));
      EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
      for (const auto& [name, gradient] : expected.gradients) {
        EXPECT_LT(relative_difference(actual.gradients.at(name), gradient), 2e-5) << name;
      }
    }
  }
}

}  // namespace
}  // namespace models
