#include "estimator/plan/attention_choice.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

Attention chosen(const char* gpu, const Json& training) {
  return small_plan({{"cluster", {{"gpu", gpu}}}, {"training", training}}).training.attention;
}

// get_attention_backend in TransformerEngine's attention/dot_product_attention/utils.py.
TEST(AttentionChoice, OfTransformerEngineIsCudnnsFromHopperOn) {
  EXPECT_EQ(chosen("h100", Json::object()), Attention::kFused);
  EXPECT_EQ(chosen("b200", Json::object()), Attention::kFused);
  EXPECT_EQ(chosen("a100", Json::object()), Attention::kFlash);
}

// FlashAttention is disabled for a softmax_type.
TEST(AttentionChoice, OfTransformerEngineIsCudnnsForSinks) {
  EXPECT_EQ(small_plan({{"model", {{"softmax_type", "learnable"}}}, {"cluster", {{"gpu", "a100"}}}})
                .training.attention,
            Attention::kFused);
}

// ScaledDotProductAttentionWrapper in torchtitan/models/attention.py of v0.2.2: `onerank exec` of
// TorchTitan on an A100 runs aten::_scaled_dot_product_cudnn_attention, too.
TEST(AttentionChoice, OfTorchtitanIsCudnnsWhereThatIsForTheHeads) {
  const auto chosen_for = [](const char* gpu, int64_t width, bool deterministic) {
    return small_plan(
               {{"model", {{"kv_channels", width}}},
                {"cluster", {{"gpu", gpu}}},
                {"training", {{"framework", "torchtitan"}, {"deterministic_mode", deterministic}}}})
        .training.attention;
  };
  for (const char* gpu : {"a100", "h100", "b200"}) {
    EXPECT_EQ(chosen_for(gpu, 128, false), Attention::kFused) << gpu;
    EXPECT_EQ(chosen_for(gpu, 100, false), Attention::kFlash) << gpu;
    EXPECT_EQ(chosen_for(gpu, 128, true), Attention::kFlash) << gpu;
  }
  EXPECT_EQ(chosen_for("h100", 256, false), Attention::kFused);
  EXPECT_EQ(chosen_for("b200", 256, false), Attention::kFlash);
}

TEST(AttentionChoice, OfOtherFrameworksIsWhatTheyCall) {
  EXPECT_EQ(chosen("h100", {{"framework", "megatron-deepspeed"}}), Attention::kUnfused);
  EXPECT_EQ(chosen("h100", {{"transformer_impl", "local"}}), Attention::kUnfused);
}

TEST(AttentionChoice, IsUnfusedWhereNoFlashKernelRuns) {
  EXPECT_EQ(chosen("h100", {{"dtype", "fp32"}}), Attention::kUnfused);
  EXPECT_EQ(chosen("v100", {{"dtype", "fp16"}}), Attention::kUnfused);
  EXPECT_EQ(small_plan({{"model", {{"kv_channels", 512}}}}).training.attention,
            Attention::kUnfused);
}

// flash-attn and PyTorch pad such heads; TransformerEngine runs neither flash-attn nor cuDNN.
TEST(AttentionChoice, OfTransformerEngineIsUnfusedForHeadsThatNoKernelReads) {
  const auto chosen_for = [](const char* gpu, int64_t width, const char* framework) {
    return small_plan({{"model", {{"kv_channels", width}}},
                       {"cluster", {{"gpu", gpu}}},
                       {"training", {{"framework", framework}}}})
        .training.attention;
  };
  EXPECT_EQ(chosen_for("h100", 104, "megatron-lm"), Attention::kFused);
  EXPECT_EQ(chosen_for("h100", 100, "megatron-lm"), Attention::kUnfused);
  EXPECT_EQ(chosen_for("a100", 100, "megatron-lm"), Attention::kUnfused);
  EXPECT_EQ(chosen_for("h100", 100, "plain"), Attention::kFlash);
}

TEST(AttentionChoice, LeavesAGivenOneAlone) {
  EXPECT_EQ(chosen("h100", {{"attention", "flash"}}), Attention::kFlash);
}

TEST(AttentionChoice, WritesTheGradientOfTheScoresOnHopperAlone) {
  const auto writes = [](const char* gpu, const Json& training) {
    return writes_score_gradient(small_plan({{"cluster", {{"gpu", gpu}}}, {"training", training}}));
  };
  EXPECT_TRUE(writes("h100", {{"deterministic_mode", true}}));
  EXPECT_FALSE(writes("h100", Json::object()));
  EXPECT_FALSE(writes("h100", {{"deterministic_mode", true}, {"attention", "flash"}}));
  EXPECT_FALSE(writes("gb200", {{"deterministic_mode", true}}));
}

}  // namespace
}  // namespace estimator
