#include "estimator/compute/attention_extras.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

constexpr const char* kCudnn = "aten::_scaled_dot_product_cudnn_attention";

// 4,096 tokens, 16 heads of 128, batch 2: 408 us; with a mask 754, with dropout 946.
TEST(AttentionExtras, TakeAsLongAsMeasured) {
  EXPECT_NEAR(attention_slowdown(kCudnn, {.mask = true}) * 408 / 754, 1, 0.05);
  EXPECT_NEAR(attention_slowdown(kCudnn, {.dropout = true}) * 408 / 946, 1, 0.05);
  EXPECT_GT(attention_slowdown(kCudnn, {.mask = true, .dropout = true}),
            attention_slowdown(kCudnn, {.dropout = true}));
}

TEST(AttentionExtras, OfACallWithoutThemAreNone) {
  EXPECT_EQ(attention_slowdown(kCudnn, {}), 1);
  EXPECT_EQ(attention_slowdown("aten::mm", {.mask = true, .dropout = true}), 1);
}

}  // namespace
}  // namespace estimator
