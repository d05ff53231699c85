#include "estimator/compute/model_flops.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

// 2 samples of 8 tokens, so 16 tokens. Forward of a layer: attention matrices 2 x 16 x 4 x (4 + 2 +
// 2 + 4) = 1,536; causal core 2 matrices x 2 x 16 x 8 x 4 / 2 = 1,024; three MLP matrices 2 x 16 x
// 4 x 8 x 3 = 3,072. Head: 2 x 16 x 4 x 16 = 2,048. Three layers and the head: 3 x 5,632 + 2,048 =
// 18,944.
Plan tiny_gqa(const char* recompute) {
  return resolve_plan({{"model",
                        {{"num_layers", 3},
                         {"hidden_size", 4},
                         {"num_attention_heads", 2},
                         {"num_query_groups", 1},
                         {"ffn_hidden_size", 8},
                         {"activation", "swiglu"},
                         {"vocab_size", 15},
                         {"max_position_embeddings", 8}}},
                       {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}, {"gpus_per_node", 1}}},
                       {"training",
                        {{"global_batch_size", 2},
                         {"recompute", recompute},
                         {"make_vocab_size_divisible_by", 16}}}},
                      {});
}

TEST(StepFlops, CountsForwardOnceAndBackwardTwice) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("none")).model, 3 * 18944);
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("none")).hardware, 3 * 18944);
}

TEST(StepFlops, SelectiveRecomputeDoesTheCoreAttentionAgain) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("selective")).model, 3 * 18944);
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("selective")).hardware, 3 * 18944 + 3 * 1024);
}

// Forward and backward thrice of the other half of the core attention.
TEST(StepFlops, CountsAllOfTheAttentionAsPalmDoes) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("none")).model_full_attention, 3 * 18944 + 3 * 3 * 1024);
}

TEST(StepFlops, FullRecomputeDoesTheLayersAgainButNotTheHead) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("full")).hardware, 3 * 18944 + 3 * 5632);
}

// Narayanan et al. 2021, appendix: 72 B s l h^2 (1 + s / 6h + V / 12 l h) without recompute; causal
// attention counts half of their s / 6h.
TEST(StepFlops, OfGpt3EqualsTheClosedForm) {
  const Plan plan = small_plan(
      {{"model", "gpt3-175b"},
       {"cluster", {{"gpu", "a100-sxm-80"}, {"nodes", 128}}},
       {"parallelism", {{"tensor", 8}, {"pipeline", 8}}},
       {"training",
        {{"global_batch_size", 1536}, {"sequence_length", 2048}, {"dialect", "megatron-lm"}}}});
  const double tokens = 1536.0 * 2048, layers = 96, h = 12288, s = 2048, vocabulary = 51200;
  EXPECT_NEAR(step_flops(plan).model / (72 * tokens * layers * h * h *
                                        (1 + s / (12 * h) + vocabulary / (12 * layers * h))),
              1,
              1e-12);
}

}  // namespace
}  // namespace estimator
