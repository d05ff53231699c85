// What a rank with multi-latent attention does: its operators on the virtual GPU.
#include <gtest/gtest.h>

#include "tests/sim/rank/executed_rank.h"

namespace sim::latent_attention {  // where the formulas' letters mean its sizes
namespace {

constexpr double s = 512, b = 4, a = 16, kLatent = 128, kKey = 128, kPositions = 64, kValue = 96;

/// Two layers; keys of 128 and 64 more with positions, values of 96.
estimator::Plan latent_plan() {
  return gpt_plan({{"model",
                    {{"position_embedding", "rope"},
                     {"multi_latent_attention", true},
                     {"kv_lora_rank", kLatent},
                     {"qk_head_dim", kKey},
                     {"qk_pos_emb_head_dim", kPositions},
                     {"v_head_dim", kValue}}},
                   {"cluster", {{"gpu", "h100"}}},
                   {"training", {{"attention", "fused"}}}});
}

// Two products of the forward, one as wide as keys and one as values; of the backward three and
// two.
TEST(LatentAttention, CountsProductsAsWideAsKeysAndAsValues) {
  const double pairs = a * b * s * s / 2;
  const double key = kKey + kPositions;
  int found = 0;
  for (const auto& record : execute(latent_plan()).operators) {
    if (record.name == "aten::_efficient_attention_forward") {
      EXPECT_EQ(record.flops, 2 * pairs * (key + kValue));
      ++found;
    } else if (record.name == "aten::_efficient_attention_backward") {
      EXPECT_EQ(record.flops, 2 * pairs * (3 * key + 2 * kValue));
      ++found;
    }
  }
  EXPECT_EQ(found, 2);
}

// fused_mla_yarn_rope_apply.py: the part of the query with positions is read and written where it
// lies; keys and values without positions are read as one and written apart, a key with positions
// of each head is written besides. In backward all of it the other way around.
TEST(LatentAttention, MovesWhatMegatronsFusedRotaryKernelsMove) {
  const estimator::Plan plan = latent_plan();
  const auto operators = execute(plan).operators;
  const double rows = s * b * a * 2;  // bytes of what is one wide, of all heads
  const double expected = rows * (2 * kPositions) + rows * (kKey + kValue) * 2 + rows * kPositions;
  for (const auto direction : {estimator::Direction::kForward, estimator::Direction::kBackward}) {
    double moved = 0, calls = 0;
    for (const estimator::OperatorRecord& record : operators) {
      if (record.direction != direction || record.module_kind != "attention") continue;
      const auto count = static_cast<double>(record.count);
      if (record.name.starts_with("aten::_efficient_attention")) calls = count;
      if (record.name == "fused_rope" || record.name == "fused_mla_rope") {
        moved += record.bytes * count;
      }
    }
    EXPECT_NEAR(moved / (calls * expected), 1, 0.03);
  }
}

}  // namespace
}  // namespace sim::latent_attention
