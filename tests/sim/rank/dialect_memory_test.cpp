// What each framework's own buffers and kernels add, worked out by hand on a GPT of two layers:
// hidden 1024, 16 heads, vocabulary 1024, micro-batches of 4 x 512 tokens, 16-bit.
#include <gtest/gtest.h>

#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::Json;

constexpr int64_t s = 512, b = 4, h = 1024, heads = 16;
constexpr int64_t kFp16 = 2, kFp32 = 4;

Json training(const Json& changes) { return {{"training", changes}}; }

int64_t held_between_iterations(const Json& changes) {
  return execute(gpt_plan(changes)).phases.back().after.allocated_bytes;
}

int64_t peak(const Json& changes) { return execute(gpt_plan(changes)).peak.allocated_bytes; }

TEST(MegatronDialect, OfTransformerEngineHasItsWorkspaceAndOfLocalLayersTheGlobalBuffer) {
  // TransformerEngine: 4 MiB on A100, and a stand-in gradient for each shape of weight. Local
  // layers: the input of the first attention product, [b * heads, s, s].
  const int64_t workspace = 4 * 1024 * 1024;
  const int64_t stand_ins = kFp16 * (3 + 1 + 4 + 4) * h * h;
  const int64_t scores = kFp16 * b * heads * s * s;
  EXPECT_EQ(held_between_iterations(Json::object()) -
                held_between_iterations(training({{"transformer_impl", "local"}})),
            workspace + stand_ins - scores);
}

TEST(MegatronDialect, HasNoStandInsWithoutGradientAccumulationFusion) {
  const auto profile = execute(gpt_plan(training({{"gradient_accumulation_fusion", false}})));
  EXPECT_EQ(profile.model_state->gradient_stand_in_bytes, 0);
}

// So large that the peak is in the loss, where a micro-batch's forward still has all that it
// carries.
constexpr int64_t kVocabulary = 131'072;

TEST(MegatronDialect, CarriesTheAttentionMaskWhereTheDataLoaderMakesIt) {
  const auto peak_with = [](bool mask) {
    return peak({{"model", {{"vocab_size", kVocabulary}}},
                 {"training", {{"attention_mask_in_dataloader", mask}}}});
  };
  EXPECT_EQ(peak_with(true) - peak_with(false), b * s * s);
}

TEST(MegatronDialect, CompiledCrossEntropyHasASecondFp32Buffer) {
  const auto peak_with = [](const char* fusion) {
    return peak({{"model", {{"vocab_size", kVocabulary}}},
                 {"training", {{"cross_entropy_fusion", fusion}}}});
  };
  const int64_t none = peak_with("none");
  const int64_t logits_fp32 = s * b * kVocabulary * kFp32;
  EXPECT_NEAR(peak_with("native") - none, logits_fp32, 0.01 * logits_fp32);
  EXPECT_LT(peak_with("te"), none - logits_fp32 / 2);
}

TEST(NanotronDialect, KeepsTheGatheredInputOfColumnParallelLayers) {
  // qkv and the MLP's first layer keep [s, b, h] where Megatron-LM keeps a part of it.
  static constexpr int64_t t = 4;
  const auto layer_bytes = [](const char* dialect) {
    const auto with_layers = [&](int64_t layers) {
      return execute(gpt_plan({{"model", {{"num_layers", layers}}},
                               {"cluster", {{"gpus_per_node", t}}},
                               {"parallelism", {{"tensor", t}, {"sequence_parallel", true}}},
                               {"training", {{"dialect", dialect}}}}))
          .micro_batches.activation_bytes;
    };
    return with_layers(3) - with_layers(2);
  };
  EXPECT_EQ(layer_bytes("nanotron") - layer_bytes("megatron-lm"),
            2 * kFp16 * s * b * h * (t - 1) / t);
}

TEST(TorchtitanDialect, HasOneTypeForAllStateWithoutFsdp) {
  const auto profile = execute(gpt_plan(training({{"dialect", "torchtitan"}, {"dtype", "bf16"}})));
  const int64_t parameters = profile.parameters.count;
  EXPECT_EQ(profile.model_state->parameter_bytes, 2 * parameters);
  EXPECT_EQ(profile.model_state->gradient_bytes, 2 * parameters);
  EXPECT_EQ(profile.model_state->main_weight_bytes, 0);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 4 * parameters);
}

// fp16: the parameters' own are the sum; bf16: flat fp32 ones, and the parameters' own beside them.
TEST(MegatronDeepspeedDialect, SumsGradientsInFp16OrKeepsThemBesideFp32) {
  const auto gradient_bytes = [](const char* dtype) {
    const auto profile =
        execute(gpt_plan(training({{"dialect", "megatron-deepspeed"}, {"dtype", dtype}})));
    return profile.model_state->gradient_bytes / profile.parameters.count;
  };
  EXPECT_EQ(gradient_bytes("fp16"), 2);
  EXPECT_EQ(gradient_bytes("bf16"), 2 + 4);
}

// Weights, fp32 weights and two moments; and the fp32 gradients of BF16Optimizer, flat from the
// start.
TEST(MegatronDeepspeedDialect, HasItsStateBeforeTheFirstStep) {
  const auto bytes_after_build = [](const char* dtype) {
    const auto profile =
        execute(gpt_plan({{"parallelism", {{"zero_stage", 1}}},
                          {"training", {{"dialect", "megatron-deepspeed"}, {"dtype", dtype}}}}));
    EXPECT_EQ(profile.phases[1].name, "build_optimizer");
    return static_cast<double>(profile.phases[1].after.allocated_bytes) /
           static_cast<double>(profile.parameters.count);
  };
  EXPECT_NEAR(bytes_after_build("fp16"), 2 + 12, 0.1);
  EXPECT_NEAR(bytes_after_build("bf16"), 2 + 4 + 12, 0.1);
}

TEST(NanotronDialect, KeepsTheQueryInsideACopyOfQueryKeyAndValue) {
  // The copy of all three (3 s b h), key and value again (2 s b h); Megatron-LM keeps one of each.
  const auto layer_bytes = [](const char* dialect) {
    const auto with_layers = [&](int64_t layers) {
      return execute(gpt_plan({{"model",
                                {{"num_layers", layers},
                                 {"position_embedding", "rope"},
                                 {"attention_dropout", 0}}},
                               {"training", {{"dialect", dialect}, {"attention", "flash"}}}}))
          .micro_batches.activation_bytes;
    };
    return with_layers(3) - with_layers(2);
  };
  EXPECT_EQ(layer_bytes("nanotron") - layer_bytes("megatron-lm"), 2 * kFp16 * s * b * h);
}

}  // namespace
}  // namespace sim
