// What the shard computes: loss and gradients must not depend on how memory is saved.
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <cmath>
#include <string>

#include "models/pipeline/mock_data.h"
#include "models/pipeline/prediction_layer.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;

constexpr double kFp32Tolerance = 2e-5;

void expect_same(const Iteration& actual, const Iteration& expected) {
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    // A key's bias has an analytically zero gradient inside linear_qkv.bias; its norm is carried by
    // the rest.
    EXPECT_LT(relative_difference(actual.gradients.at(name), gradient), kFp32Tolerance) << name;
    EXPECT_GT(gradient.norm().item().toDouble(), 0) << name;
  }
}

/// Gradients of products that are one product in most frameworks, put together as that one's.
Iteration packed(Iteration iteration, const estimator::ModelConfig& model) {
  const auto take = [&](const std::string& name) {
    const at::Tensor gradient = iteration.gradients.at(name);
    iteration.gradients.erase(name);
    return gradient;
  };
  const auto of_groups = [&](const at::Tensor& gradient) {
    return gradient.unflatten(0, at::IntArrayRef{model.num_query_groups, -1});
  };
  for (int64_t layer = 0; layer < model.num_layers; ++layer) {
    const std::string path = "layers." + std::to_string(layer);
    for (const std::string kind : {".weight", ".bias"}) {
      const std::string attention = path + ".self_attention.", mlp = path + ".mlp.";
      if (iteration.gradients.count(attention + "query" + kind) > 0) {
        iteration.gradients[attention + "linear_qkv" + kind] =
            at::cat({of_groups(take(attention + "query" + kind)),
                     of_groups(take(attention + "key" + kind)),
                     of_groups(take(attention + "value" + kind))},
                    1)
                .flatten(0, 1);
      }
      if (iteration.gradients.count(mlp + "gate" + kind) > 0) {
        iteration.gradients[mlp + "linear_fc1" + kind] =
            at::cat({take(mlp + "gate" + kind), take(mlp + "up" + kind)});
      }
    }
  }
  return iteration;
}

Json merged(Json base, const Json& changes) {
  base.merge_patch(changes);
  return base;
}

Json training(const std::string& key, const Json& value) { return {{"training", {{key, value}}}}; }

struct Family {
  std::string name;
  Json changes;
};

Json expert_changes() {
  return merged(llama_changes(),
                {{"model",
                  {{"num_experts", 4},
                   {"moe_layer_freq", {1, 0}},
                   {"moe_ffn_hidden_size", 24},
                   {"moe_shared_expert_intermediate_size", 16}}}});
}

Json prediction_changes(Json changes, bool tied) {
  changes["model"]["mtp_num_layers"] = 2;
  changes["model"]["tie_embeddings"] = tied;
  return changes;
}

/// Megatron-LM has no such layers.
Json parallel_changes(bool tied) {
  return {{"model", {{"parallel_residual", true}, {"tied_layernorm", tied}}},
          {"training", {{"framework", "plain"}}}};
}

/// Norms after attention and MLP, and one norm over all heads (OLMo 2).
Json norms_after_changes() {
  return merged(llama_changes(),
                {{"model",
                  {{"norm_position", "after"},
                   {"qk_layernorm", true},
                   {"qk_layernorm_whole", true},
                   {"no_rope_freq", {2}}}},
                 {"training", {{"framework", "plain"}}}});
}

/// Four norms without biases in a layer, biases in attention alone, and one of the output layer.
Json other_parameters_changes() {
  return {{"model",
           {{"norm_position", "both"},
            {"norm_parameters", "weight"},
            {"tie_embeddings", false},
            {"add_bias_linear", false},
            {"add_attention_bias", true},
            {"add_output_bias", true}}},
          {"training", {{"framework", "plain"}}}};
}

/// Every second layer attends to four of the sixteen tokens, with other angles.
Json window_changes() {
  return merged(llama_changes(),
                {{"model",
                  {{"sliding_window", 4},
                   {"window_attn_skip_freq", {2}},
                   {"rotary_base_in_window", 100},
                   {"norm_weight_in_fp32", true},
                   {"final_logit_softcapping", 30}}},
                 {"training", {{"framework", "plain"}}}});
}

/// Not every framework has every layer, nor every layer every option.
bool is_refused(const Json& changes) {
  try {
    small_plan(changes);
    return false;
  } catch (const estimator::UserError&) {
    return true;
  }
}

class Shard : public testing::TestWithParam<Family> {};

/// A Llama with norms of queries and keys, positions in half of each head, and squared ReLU.
Json normed_changes() {
  return merged(
      llama_changes(),
      {{"model",
        {{"qk_layernorm", true}, {"rotary_percent", 0.5}, {"activation", "squared_relu"}}}});
}

TEST_P(Shard, StartsAtTheLossOfAUniformGuess) {
  // Weights of deviation 0.02 give logits near 0: the loss is near ln(vocabulary).
  EXPECT_NEAR(run_iteration(small_plan(GetParam().changes)).loss, std::log(64.0), 0.05);
}

TEST_P(Shard, FullRecomputeGivesTheSameGradients) {
  const Json& family = GetParam().changes;
  expect_same(run_iteration(small_plan(merged(family, training("recompute", "full")))),
              run_iteration(small_plan(family)));
}

TEST_P(Shard, RecomputeOfSomeLayersOrOfSeveralAsOneGivesTheSameGradients) {
  const Json& family = merged(GetParam().changes, training("recompute", "full"));
  for (const Json& method :
       {Json{{"recompute_method", "block"}}, Json{{"recompute_num_layers", 2}}}) {
    const Json changes = merged(family, {{"training", method}});
    if (is_refused(changes)) continue;
    expect_same(run_iteration(small_plan(changes)), run_iteration(small_plan(GetParam().changes)));
  }
}

TEST_P(Shard, SelectiveRecomputeGivesTheSameGradients) {
  const Json& family = GetParam().changes;
  expect_same(run_iteration(small_plan(merged(family, training("recompute", "selective")))),
              run_iteration(small_plan(family)));
}

TEST_P(Shard, ChosenModulesRecomputedGiveTheSameGradients) {
  const Json family =
      merged(GetParam().changes,
             {{"model", {{"hidden_dropout", 0.2}}}, {"training", {{"recompute", "selective"}}}});
  const Json whole = merged(family, training("recompute", "none"));
  if (is_refused(merged(family, training("recompute_modules", Json::array({"core_attn"}))))) return;
  const Iteration kept = run_iteration(small_plan(whole));
  const std::vector<std::string> all = estimator::names_of<estimator::RecomputeModule>();
  for (const char* implementation : {"transformer_engine", "local"}) {
    const Json layers = merged(family, training("transformer_impl", implementation));
    for (const std::string& module : all) {
      SCOPED_TRACE(implementation + (" " + module));
      const Json chosen = merged(layers, training("recompute_modules", Json::array({module})));
      if (!is_refused(chosen)) expect_same(run_iteration(small_plan(chosen)), kept);
    }
  }
}

TEST(Shard, RecomputesAllModulesTogether) {
  const Json together =
      training("recompute_modules",
               Json::array({"core_attn", "moe", "shared_experts", "layernorm", "moe_act"}));
  const Json selective = merged(expert_changes(), training("recompute", "selective"));
  expect_same(run_iteration(small_plan(merged(selective, together))),
              run_iteration(small_plan(expert_changes())));
}

TEST(Shard, RoutesByFusedKernelsAsByOperators) {
  const Json routers = {{{"moe_router_topk", 2}, {"moe_router_score_function", "softmax"}},
                        {{"moe_router_topk", 2}, {"moe_router_pre_softmax", true}},
                        {{"moe_router_topk", 1}, {"moe_router_score_function", "sigmoid"}},
                        {{"moe_router_topk", 2},
                         {"moe_router_score_function", "sigmoid"},
                         {"moe_router_topk_scaling_factor", 2.5}}};
  for (const Json& router : routers) {
    for (const char* balancing : {"aux_loss", "seq_aux_loss"}) {
      SCOPED_TRACE(router.dump() + balancing);
      Json changes = merged(expert_changes(), {{"model", router}});
      changes["model"]["moe_aux_loss_coeff"] = 0.3;
      changes["model"]["moe_router_load_balancing_type"] = balancing;
      const Iteration plain = run_iteration(small_plan(changes));
      changes["training"]["moe_router_fusion"] = true;
      expect_same(run_iteration(small_plan(changes)), plain);
    }
  }
}

TEST_P(Shard, GivesTheSameGradientsInCudaGraphs) {
  const Json family = merged(GetParam().changes, training("check_for_nan_in_loss_and_grad", false));
  const Json whole = merged(family, training("cuda_graph_impl", "full_iteration"));
  const Json layers = merged(family, training("cuda_graph_impl", "transformer_engine"));
  std::vector<Json> captured = {whole, layers};
  for (const Json& modules : {Json{"attn"},
                              Json{"mlp"},
                              Json{"attn", "moe_router"},
                              Json{"moe_router", "moe_preprocess"},
                              Json{"attn", "mlp", "moe_router", "moe_preprocess"}}) {
    captured.push_back(merged(layers, training("cuda_graph_modules", modules)));
  }
  for (const Json& graphs : captured) {
    SCOPED_TRACE(graphs["training"].dump());
    if (!is_refused(graphs)) {
      expect_same(run_iteration(small_plan(graphs)), run_iteration(small_plan(family)));
    }
  }
}

TEST_P(Shard, RecomputeDrawsTheSameDropout) {
  const Json dropout = merged(GetParam().changes,
                              {{"model", {{"hidden_dropout", 0.2}, {"attention_dropout", 0.2}}},
                               {"training", {{"global_batch_size", 2}}}});
  const Iteration kept = run_iteration(small_plan(dropout));
  expect_same(run_iteration(small_plan(merged(dropout, training("recompute", "full")))), kept);
}

TEST_P(Shard, FrameworksDifferInMemoryOnly) {
  const Json& family = GetParam().changes;
  const Iteration plain = run_iteration(small_plan(merged(family, training("framework", "plain"))));
  for (const std::string& framework : estimator::names_of<estimator::Framework>()) {
    SCOPED_TRACE(framework);
    if (is_refused(merged(family, training("framework", framework)))) continue;
    const estimator::Plan plan = small_plan(merged(family, training("framework", framework)));
    const bool turns_other_pairs =  // shard_operators_test.cpp compares them
        plan.model.position_embedding == estimator::PositionEmbedding::kRope &&
        estimator::traits_of(plan.training.framework).complex_rotary;
    if (turns_other_pairs) continue;
    expect_same(packed(run_iteration(plan), plan.model), plain);
  }
}

TEST_P(Shard, AnRmsNormOfOperatorsGivesTheSameGradients) {
  const Json family = merged(GetParam().changes, training("framework", "plain"));
  if (is_refused(family)) return;
  expect_same(run_iteration(small_plan(merged(family, training("rms_norm_fusion", false)))),
              run_iteration(small_plan(family)));
}

TEST(TorchTitansShard, GivesTheSameGradientsUnderSelectiveRecompute) {
  const Json titan = training("framework", "torchtitan");
  const Json dropout = {{"model", {{"hidden_dropout", 0.2}}},
                        {"training", {{"global_batch_size", 2}}}};
  const Json biased = {{"model", {{"add_qkv_bias", true}}}};
  const Json deep = {{"model", {{"num_layers", 4}}}};
  const Json llama = merged(llama_changes(), titan);
  for (const Json& family : {titan, llama, merged(llama, dropout), merged(llama, biased)}) {
    estimator::Plan plan = small_plan(merged(family, deep));
    for (const auto attention : {estimator::Attention::kUnfused, estimator::Attention::kFlash}) {
      plan.training.attention = attention;  // a GPU would refuse flash in fp32
      plan.training.recompute = estimator::Recompute::kNone;
      const Iteration kept = run_iteration(plan);
      plan.training.recompute = estimator::Recompute::kSelective;
      for (const char* option : {"op", "2", "3", "0"}) {
        SCOPED_TRACE(option);
        plan.training.selective_ac_option = option;
        expect_same(run_iteration(plan), kept);
      }
    }
  }
}

TEST(FullyShardedShard, GathersAndFreesWithoutChangingGradients) {
  const Json titan = training("framework", "torchtitan");
  const Json gpipe = {{"parallelism", {{"pipeline_schedule", "gpipe"}}}};  // all forwards first
  for (const Json& family : {titan, merged(llama_changes(), titan), merged(titan, gpipe)}) {
    const Iteration whole = run_iteration(small_plan(family));
    for (const int zero_stage : {2, 3}) {
      const Json sharded = merged(family, {{"parallelism", {{"zero_stage", zero_stage}}}});
      expect_same(run_iteration(small_plan(sharded)), whole);
      for (const char* recompute : {"full", "selective"}) {
        expect_same(run_iteration(small_plan(merged(sharded, training("recompute", recompute)))),
                    whole);
      }
    }
  }
}

void expect_nearly(const Iteration& quantized, const Iteration& whole, double most) {
  EXPECT_NEAR(quantized.loss, whole.loss, most / 40);
  EXPECT_NE(quantized.loss, whole.loss);
  for (const auto& [name, gradient] : whole.gradients) {
    EXPECT_LT(relative_difference(quantized.gradients.at(name), gradient), most) << name;
  }
}

/// Two copies of a matrix, one, and two with scales of their own.
struct GpuAndRecipe {
  const char *gpu, *recipe;
};
constexpr std::array<GpuAndRecipe, 7> kQuantized = {{{"h100", "tensorwise"},
                                                     {"h100", "delayed"},
                                                     {"h100", "blockwise"},
                                                     {"b200", "tensorwise"},
                                                     {"b200", "delayed"},
                                                     {"b200", "mxfp8"},
                                                     {"b200", "nvfp4"}}};

bool in_four_bits(const GpuAndRecipe& way) { return std::string(way.recipe) == "nvfp4"; }

Json quantized(const GpuAndRecipe& way) {
  const Json training = in_four_bits(way)
                            ? Json{{"dtype", "bf16"}, {"fp4_format", "e2m1"}}
                            : Json{{"fp8_format", "hybrid"}, {"fp8_recipe", way.recipe}};
  return {{"cluster", {{"gpu", way.gpu}}}, {"training", training}};
}

/// Widths that are multiples of a block, and rows of experts that are not.
Json quantized_experts(const Json& experts) {
  return merged(experts,
                {{"model",
                  {{"ffn_hidden_size", 64},
                   {"moe_ffn_hidden_size", 64},
                   {"moe_shared_expert_intermediate_size", 64}}},
                 {"training", {{"moe_grouped_gemm", true}}}});
}

// Three bits of mantissa: a product's operands are wrong by up to 1/16 each, at random. With one
// bit by up to 1/4.
TEST(Quantized, GiveNearlyTheSameLossAndGradients) {
  const Json widths = {{"model", {{"ffn_hidden_size", 64}}}};  // multiples of a block
  for (const Json& family :
       {widths,
        merged(llama_changes(), widths),
        prediction_changes(merged(llama_changes(), widths), false),
        quantized_experts(expert_changes()),
        merged(quantized_experts(expert_changes()), training("moe_grouped_gemm", false))}) {
    const Iteration whole = run_iteration(small_plan(family));
    for (const GpuAndRecipe& way : kQuantized) {
      if (in_four_bits(way) && family.at("model").contains("mtp_num_layers")) continue;
      const Json plan = merged(family, quantized(way));
      for (const char* recompute : {"none", "full"}) {
        SCOPED_TRACE(std::string(way.gpu) + " " + way.recipe + " " + recompute);
        expect_nearly(run_iteration(small_plan(merged(plan, training("recompute", recompute)))),
                      whole,
                      in_four_bits(way) ? 0.5 : 0.2);
      }
    }
  }
}

// The values that products read are those of 8 bits in both, and gradients do not depend on where
// they lie. After steps they come from the same master weights.
TEST(Quantized, LearnTheSameFromParametersThatAreQuantizedAlone) {
  for (const GpuAndRecipe& way : kQuantized) {
    if (std::string(way.recipe) == "blockwise") continue;  // refused
    SCOPED_TRACE(std::string(way.gpu) + " " + way.recipe);
    const Json plan = merged(merged(quantized_experts(expert_changes()), quantized(way)),
                             {{"parallelism", {{"zero_stage", 1}}}});
    const Iteration beside = run_iteration(small_plan(plan));
    const char* gathers = in_four_bits(way) ? "fp4_param_gather" : "fp8_param_gather";
    const Iteration alone = run_iteration(small_plan(merged(plan, training(gathers, true))));
    EXPECT_EQ(alone.loss, beside.loss);
    for (const auto& [name, gradient] : beside.gradients) {
      EXPECT_TRUE(at::equal(alone.gradients.at(name), gradient)) << name;
    }
  }
}

// What is computed again is quantized again, to the same values.
TEST(Quantized, QuantizeAgainWhatExpertsComputeAgain) {
  for (const GpuAndRecipe& way : kQuantized) {
    if (std::string(way.recipe) == "delayed") continue;
    SCOPED_TRACE(std::string(way.gpu) + " " + way.recipe);
    const Json plan = merged(quantized_experts(expert_changes()), quantized(way));
    const Iteration kept = run_iteration(small_plan(plan));
    const Json again = {
        {"training", {{"recompute", "selective"}, {"recompute_modules", {"moe_act"}}}}};
    const Iteration computed = run_iteration(small_plan(merged(plan, again)));
    EXPECT_EQ(computed.loss, kept.loss);
    for (const auto& [name, gradient] : kept.gradients) {
      EXPECT_TRUE(at::equal(computed.gradients.at(name), gradient)) << name;
    }
  }
}

// So is what norms give whose output is freed, and what comes of latents: the layers that read the
// norm keep its output in 16 bits.
TEST(Quantized, QuantizeAgainWhatNormsAndLatentsComputeAgain) {
  const Json latents = merged(latent_changes(),
                              {{"model",
                                {{"ffn_hidden_size", 64},
                                 {"q_lora_rank", 32},
                                 {"kv_lora_rank", 32},
                                 {"qk_head_dim", 24},
                                 {"qk_pos_emb_head_dim", 32},
                                 {"v_head_dim", 8}}}});
  for (const GpuAndRecipe& way : kQuantized) {
    if (std::string(way.recipe) == "delayed") continue;
    SCOPED_TRACE(std::string(way.gpu) + " " + way.recipe);
    const Json plan = merged(latents, quantized(way));
    const Json again = {
        {"training",
         {{"recompute", "selective"}, {"recompute_modules", {"layernorm", "mla_up_proj"}}}}};
    expect_same(run_iteration(small_plan(merged(plan, again))), run_iteration(small_plan(plan)));
  }
}

// What cuDNN's kernel takes is not in the others: they cannot be compared with it.
TEST(Shard, OfGptOssComputesTheSameInEachFrameworkAndAgain) {
  const Json family = gpt_oss_changes();
  const Iteration plain = run_iteration(exact_plan(merged(family, training("framework", "plain"))));
  EXPECT_EQ(plain.gradients.count("layers.1.self_attention.core_attention.softmax_offset"), 1U);
  EXPECT_EQ(plain.gradients.count("layers.1.mlp.experts.3.linear_fc2.bias"), 1U);
  EXPECT_EQ(plain.gradients.count("layers.1.mlp.router.bias"), 1U);
  const Json selective = training("recompute", "selective");
  for (const Json& changes :
       {training("framework", "megatron-lm"),
        training("recompute", "full"),
        training("bias_gelu_fusion", false),
        training("gradient_accumulation_fusion", false),
        training("moe_token_dispatcher_type", "allgather"),
        merged(selective, training("recompute_modules", Json::array({"core_attn"}))),
        merged(selective, training("recompute_modules", Json::array({"moe", "layernorm"}))),
        merged(selective, training("recompute_modules", Json::array({"moe_act"})))}) {
    SCOPED_TRACE(changes.dump());
    expect_same(run_iteration(exact_plan(merged(family, changes))), plain);
  }
}

TEST(Shard, GradientsInBf16AreThoseInFp32Rounded) {
  const Json in_bf16 = {{"training", {{"dtype", "bf16"}}}};
  const Iteration usual = run_iteration(small_plan(in_bf16));
  const Iteration reduced =
      run_iteration(small_plan(merged(in_bf16, training("grad_reduce_in_bf16", true))));
  EXPECT_EQ(reduced.loss, usual.loss);
  for (const auto& [name, gradient] : usual.gradients) {
    const double difference = (reduced.gradients.at(name) - gradient).norm().item().toDouble();
    EXPECT_GT(difference, 0) << name;
    EXPECT_LT(difference, 0.01 * gradient.norm().item().toDouble()) << name;
  }
}

TEST_P(Shard, MegatronsOptionsDifferInMemoryOnly) {
  const Json& family = GetParam().changes;
  const Iteration usual = run_iteration(small_plan(family));
  for (const Json& option :
       {training("transformer_impl", "local"),
        training("cross_entropy_fusion", "native"),
        training("cross_entropy_fusion", "te"),
        training("gradient_accumulation_fusion", false),
        training("attention_mask_in_dataloader", false),
        training("bias_gelu_fusion", false),
        training("bias_swiglu_fusion", false),
        training("bias_dropout_fusion", false),
        training("rope_fusion", false),
        training("moe_token_dispatcher_type", "allgather"),
        training("moe_grouped_gemm", false),
        training("moe_router_dtype", "fp32"),
        Json{{"training", {{"transformer_impl", "local"}, {"masked_softmax_fusion", false}}}},
        training("megatron_core", "0.13")}) {
    SCOPED_TRACE(option);
    if (is_refused(merged(family, option))) continue;
    expect_same(run_iteration(small_plan(merged(family, option))), usual);
  }
}

TEST_P(Shard, FlashFusedAndUnfusedAttentionAgree) {
  estimator::Plan plan = small_plan(GetParam().changes);
  const Iteration unfused = run_iteration(plan);
  for (const estimator::Attention kind :
       {estimator::Attention::kFlash, estimator::Attention::kFused}) {
    plan.training.attention = kind;  // a GPU would refuse it in fp32
    expect_same(run_iteration(plan), unfused);
  }
}

TEST_P(Shard, MicroBatchesAddUpToTheBatch) {
  const Json& family = GetParam().changes;
  expect_same(run_iteration(small_plan(merged(family, training("micro_batch_size", 1)))),
              run_iteration(small_plan(merged(family, training("micro_batch_size", 4)))));
}

TEST_P(Shard, GradientIsTheSlopeOfTheLoss) {
  // Central difference along one weight; the shard's weights are the same for the same seed, so a
  // nudge is made through the parameter source: compare two trainers that differ in one element.
  const estimator::Plan plan = small_plan(GetParam().changes);
  if (plan.model.predicts_more_tokens()) GTEST_SKIP() << "the loss told is that of the next token";
  SilentObserver observer;
  const auto loss_with = [&](double nudge) {
    Trainer trainer({.plan = plan,
                     .coordinate = {},
                     .groups = {},
                     .device = at::Device(at::kCPU),
                     .observer = observer},
                    plan.micro_batches(),
                    default_optimizer(plan));
    trainer.build_model();
    for (const Parameter& parameter : trainer.stage().parameters().all()) {
      if (parameter.name != "layers.1.mlp.linear_fc2.weight") continue;
      parameter.value.detach()[3][5].add_(nudge);
    }
    trainer.forward_backward(0);
    return trainer.loss();
  };
  const double step = 0.05;
  const double slope = (loss_with(step) - loss_with(-step)) / (2 * step);
  const double gradient =
      run_iteration(plan).gradients.at("layers.1.mlp.linear_fc2.weight")[3][5].item().toDouble();
  EXPECT_NEAR(gradient, slope, 0.02 * std::abs(slope) + 2e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    Shard,
    testing::Values(Family{"Gpt", Json::object()},
                    Family{"Llama", llama_changes()},
                    Family{"NormedHeads", normed_changes()},
                    Family{"Experts", expert_changes()},
                    Family{"Latent", latent_changes()},
                    Family{"Predictions", prediction_changes(llama_changes(), false)},
                    Family{"ExpertPredictions", prediction_changes(expert_changes(), true)},
                    Family{"Parallel", parallel_changes(false)},
                    Family{"ParallelOneNorm", parallel_changes(true)},
                    Family{"NormsAfter", norms_after_changes()},
                    Family{"OtherParameters", other_parameters_changes()},
                    Family{"Window", window_changes()}),
    [](const auto& instance) { return instance.param.name; });

// Their losses change gradients alone, in proportion to their weight; nothing else depends on them.
TEST(Predictions, AddTheirLossesToTheGradients) {
  const auto of_weight = [](double weight) {
    Json changes = prediction_changes(llama_changes(), false);
    changes["model"]["mtp_loss_scaling_factor"] = weight;
    return run_iteration(small_plan(changes));
  };
  const Iteration none = of_weight(0), some = of_weight(0.5), more = of_weight(1);
  const Iteration without = run_iteration(small_plan(llama_changes()));
  EXPECT_EQ(none.loss, without.loss);
  EXPECT_EQ(more.loss, without.loss);
  for (const auto& [name, gradient] : without.gradients) {
    EXPECT_LT(relative_difference(none.gradients.at(name), gradient), kFp32Tolerance) << name;
    EXPECT_GT(relative_difference(some.gradients.at(name), gradient), 0.01) << name;
  }
  for (const auto& [name, gradient] : more.gradients) {
    const at::Tensor of_losses = gradient - none.gradients.at(name);
    const at::Tensor half = some.gradients.at(name) - none.gradients.at(name);
    EXPECT_LT(relative_difference(2 * half, of_losses), 1e-3) << name;
  }
}

TEST(Predictions, AreOfTheTokensThatFollow) {
  const at::Tensor tokens = at::arange(1, 5, at::kLong).view({4, 1});
  EXPECT_TRUE(following(tokens).equal(at::tensor({2, 3, 4, 0}, at::kLong).view({4, 1})));
  const at::Tensor scores = at::eye(4).unsqueeze(1);  // predicts 0, 1, 2, 3
  const at::Tensor labels = at::tensor({0, 1, 3, 3}, at::kLong).view({4, 1});
  const at::Tensor mask = at::tensor({1.0, 1.0, 1.0, 0.0}).view({4, 1});
  EXPECT_EQ(count_right(scores, labels, mask, nullptr).item().toLong(), 2);
}

// Megatron-LM's data loader has the batch first, and its embedding turns what it finds.
TEST(Shard, TokensOfMegatronLmLieBatchFirstInMemory) {
  const auto strides = [](const char* framework) {
    const estimator::Plan plan = small_plan(training("framework", framework));
    SilentObserver observer;
    ShardContext context = meta_context(plan, 0, observer);
    context.device = at::Device(at::kCPU);
    const at::Tensor tokens = mock_micro_batch(context, 0, 0).tokens;
    EXPECT_GT(tokens.size(1), 1);
    return tokens.strides().vec();
  };
  EXPECT_EQ(strides("megatron-lm").front(), 1);
  EXPECT_EQ(strides("plain").back(), 1);
}

TEST(Shard, SequencesOfADifferentIterationAreDifferent) {
  const estimator::Plan plan = small_plan();
  SilentObserver observer;
  const ShardContext context = meta_context(plan, 0, observer);
  ShardContext on_cpu = context;
  on_cpu.device = at::Device(at::kCPU);
  EXPECT_TRUE(mock_micro_batch(on_cpu, 0, 0).tokens.equal(mock_micro_batch(on_cpu, 0, 0).tokens));
  EXPECT_FALSE(mock_micro_batch(on_cpu, 0, 0).tokens.equal(mock_micro_batch(on_cpu, 1, 0).tokens));
  EXPECT_FALSE(mock_micro_batch(on_cpu, 0, 0).tokens.equal(mock_micro_batch(on_cpu, 0, 1).tokens));
}

}  // namespace
}  // namespace models
