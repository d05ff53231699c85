// The shard's own functions against PyTorch's operators.
#include <gtest/gtest.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "models/attention/rotary.h"
#include "models/attention/window_mask.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/gated_activation.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Activation;

struct Result {
  at::Tensor output, gradient;
};

template <class Function>
Result forward_backward(const at::Tensor& input, const Function& function) {
  at::Tensor leaf = input.clone().requires_grad_(true);
  const at::Tensor output = function(leaf);
  (output * output).sum().backward();
  return {output.detach(), leaf.grad()};
}

void expect_same(const Result& actual, const Result& expected) {
  EXPECT_LT(relative_difference(actual.output, expected.output), 1e-6);
  EXPECT_LT(relative_difference(actual.gradient, expected.gradient), 1e-6);
}

TEST(GatedActivation, FusedSwigluIsSiluTimesUp) {
  const at::Tensor input = at::randn({5, 3, 16});
  expect_same(forward_backward(input,
                               [](const at::Tensor& x) {
                                 return fused_activation(
                                     x, std::nullopt, {.activation = Activation::kSwiglu});
                               }),
              forward_backward(input, [](const at::Tensor& x) {
                return at::silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1];
              }));
}

TEST(GatedActivation, FusedSquaredReluIsTheSquareOfRelu) {
  const at::Tensor input = at::randn({5, 3, 16});
  expect_same(
      forward_backward(input,
                       [](const at::Tensor& x) {
                         return fused_activation(
                             x, std::nullopt, {.activation = Activation::kSquaredRelu});
                       }),
      forward_backward(input, [](const at::Tensor& x) { return at::relu(x) * at::relu(x); }));
}

TEST(GatedActivation, FusedGegluIsGeluTimesUp) {
  const at::Tensor input = at::randn({5, 3, 16});
  expect_same(forward_backward(input,
                               [](const at::Tensor& x) {
                                 return fused_activation(
                                     x, std::nullopt, {.activation = Activation::kGeglu});
                               }),
              forward_backward(input, [](const at::Tensor& x) {
                return at::gelu(x.chunk(2, -1)[0], "tanh") * x.chunk(2, -1)[1];
              }));
}

TEST(CrossEntropy, OverOneRankIsPyTorchs) {
  const at::Tensor logits = at::randn({7, 2, 50});
  const at::Tensor labels = at::randint(0, 50, {7, 2});
  for (const auto& [fusion, name] : enum_names(estimator::CrossEntropyFusion{})) {
    SCOPED_TRACE(name);
    const auto fused = [&, kind = fusion](const at::Tensor& x) {
      return vocabulary_parallel_cross_entropy(x.clone(), labels, nullptr, kind);
    };
    expect_same(forward_backward(logits, fused), forward_backward(logits, [&](const at::Tensor& x) {
                  return plain_cross_entropy(x, labels);
                }));
  }
}

TEST(CrossEntropy, LeavesTheLogitsAsTheyWereButTransformerEngines) {
  const at::Tensor logits = at::randn({3, 1, 8});
  const at::Tensor before = logits.clone(), labels = at::randint(0, 8, {3, 1});
  const auto run = [&](estimator::CrossEntropyFusion fusion) {
    vocabulary_parallel_cross_entropy(logits, labels, nullptr, fusion);
    return logits.equal(before);
  };
  EXPECT_TRUE(run(estimator::CrossEntropyFusion::kNone));
  EXPECT_TRUE(run(estimator::CrossEntropyFusion::kNative));
  EXPECT_FALSE(run(estimator::CrossEntropyFusion::kTransformerEngine));
}

RotaryEmbedding rotary_of(const char* framework,
                          const estimator::Json& more = estimator::Json::object()) {
  static SilentObserver observer;
  estimator::Json changes = llama_changes();
  changes.merge_patch({{"training", {{"framework", framework}}}});
  changes.merge_patch(more);
  const estimator::Plan plan = small_plan(changes);
  ShardContext context = meta_context(plan, 0, observer);
  context.device = at::Device(at::kCPU);
  return RotaryEmbedding(context, context.plan.model.rotary_base);
}

// The second sequence has three tokens of padding.
TEST(WindowMask, LetsATokenReadItselfAndThoseBeforeItInTheWindow) {
  SilentObserver observer;
  const estimator::Plan plan =
      small_plan({{"model", {{"sliding_window", 4}}}, {"training", {{"framework", "plain"}}}});
  ShardContext context = meta_context(plan, 0, observer);
  context.device = at::Device(at::kCPU);
  WindowMask mask(context);
  at::Tensor ones = at::ones({2, 16}, at::kLong);
  ones[1].narrow(0, 13, 3).zero_();
  mask.begin_forward(ones);
  ASSERT_EQ(mask.value().sizes(), at::IntArrayRef({2, 1, 16, 16}));
  for (int64_t i = 0; i < 2 * 16 * 16; ++i) {
    const int64_t sample = i / 256, query = i / 16 % 16, key = i % 16;
    const bool reads = key <= query && key > query - 4 && (sample == 0 || key < 13);
    EXPECT_EQ(mask.value()[sample][0][query][key].item().toBool(), reads) << i;
  }
  mask.end_forward();
  EXPECT_FALSE(mask.value().defined());
}

TEST(Rotary, FusedAndPlainAgree) {
  const at::Tensor input = at::randn({16, 2, 4, 8});
  const RotaryEmbedding fused = rotary_of("megatron-lm"), plain = rotary_of("plain");
  expect_same(forward_backward(input, [&](const at::Tensor& x) { return fused.apply(x); }),
              forward_backward(input, [&](const at::Tensor& x) { return plain.apply(x); }));
}

TEST(Rotary, OfAPartOfEachHeadLeavesTheRestAsItIs) {
  const at::Tensor input = at::randn({16, 2, 4, 8});
  const estimator::Json half = {{"model", {{"rotary_percent", 0.5}}}};
  estimator::Json unfused = half;
  unfused["training"]["rope_fusion"] = false;
  const RotaryEmbedding plain = rotary_of("plain", half);
  const auto expected = forward_backward(input, [&](const at::Tensor& x) {
    return at::cat({plain.apply(x.narrow(-1, 0, 4)), x.narrow(-1, 4, 4)}, -1);
  });
  for (const auto& [framework, changes] : {std::pair{"plain", half},
                                           std::pair{"megatron-lm", half},
                                           std::pair{"megatron-lm", unfused}}) {
    const RotaryEmbedding rotary = rotary_of(framework, changes);
    expect_same(forward_backward(input, [&](const at::Tensor& x) { return rotary.apply(x); }),
                expected);
  }
}

TEST(Rotary, OfComplexNumbersTurnsNeighboursInPlaceOfHalves) {
  const auto halves = [](const at::Tensor& pairs) {
    return pairs.unflatten(-1, at::IntArrayRef{-1, 2}).transpose(-2, -1).flatten(-2);
  };
  const at::Tensor input = at::randn({16, 2, 4, 8});
  const RotaryEmbedding plain = rotary_of("plain"), titan = rotary_of("torchtitan");
  expect_same(forward_backward(input, [&](const at::Tensor& x) { return halves(titan.apply(x)); }),
              forward_backward(input, [&](const at::Tensor& x) { return plain.apply(halves(x)); }));
}

TEST(Rotary, KeepsTheFirstTokenAndTurnsTheSecondByOneRadian) {
  SilentObserver observer;
  const estimator::Plan plan = small_plan(llama_changes());
  ShardContext context = meta_context(plan, 0, observer);
  context.device = at::Device(at::kCPU);
  const at::Tensor ones = at::randn({16, 1, 1, 8}).fill_(1);
  const at::Tensor turned =
      RotaryEmbedding(context, context.plan.model.rotary_base).apply(ones).view({16, 8});
  EXPECT_FLOAT_EQ(turned[0][0].item().toFloat(), 1.0f);
  EXPECT_NEAR(turned[1][0].item().toDouble(), std::cos(1.0) - std::sin(1.0), 1e-6);
  EXPECT_NEAR(turned[1][4].item().toDouble(), std::cos(1.0) + std::sin(1.0), 1e-6);
}

}  // namespace
}  // namespace models
