// The kernels that stand for cuDNN's, against softmax written out.
#include "models/attention/attention_kernel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

namespace models {
namespace {

constexpr int64_t kTokens = 7, kBatch = 2, kHeads = 4, kWidth = 8;

/// [s, b, heads, d] -> [b, heads, s, d].
at::Tensor heads_first(const at::Tensor& tensor) { return tensor.permute({1, 2, 0, 3}); }

/// Each query reads `window` keys; the sink is one more score, without a value.
at::Tensor written_out(const at::Tensor& query,
                       const at::Tensor& key,
                       const at::Tensor& value,
                       const at::Tensor& sink,
                       int64_t window) {
  const at::Tensor places = at::arange(kTokens);
  const at::Tensor before = places.unsqueeze(1) - places;
  const at::Tensor unseen = before.lt(0).logical_or(before.ge(window));
  const at::Tensor scores = heads_first(query)
                                .matmul(heads_first(key).transpose(2, 3))
                                .div(std::sqrt(static_cast<double>(kWidth)))
                                .masked_fill(unseen, -std::numeric_limits<double>::infinity());
  const at::Tensor last = sink.view({1, kHeads, 1, 1}).expand({kBatch, kHeads, kTokens, 1});
  const at::Tensor weights = at::softmax(at::cat({scores, last}, -1), -1).narrow(-1, 0, kTokens);
  return weights.matmul(heads_first(value)).permute({2, 0, 1, 3});
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_TRUE(actual.allclose(expected, 1e-4, 1e-5)) << (actual - expected).abs().max();
}

TEST(AttentionKernel, ReadsAWindowAndASinkAsIfWrittenOut) {
  const auto random = [] { return at::randn({kTokens, kBatch, kHeads, kWidth}); };
  const at::Tensor query = random().requires_grad_(true), key = random().requires_grad_(true);
  const at::Tensor value = random().requires_grad_(true), gradient = random();
  const at::Tensor sink = at::randn({kHeads}).requires_grad_(true);
  for (const int64_t window : {int64_t{3}, kTokens}) {
    SCOPED_TRACE(window);
    const at::Tensor expected = written_out(query, key, value, sink, window);
    const auto of_expected =
        torch::autograd::grad({expected}, {query, key, value, sink}, {gradient});

    const c10::NoGradGuard no_grad;
    const AttentionCall call{.window = window == kTokens ? 0 : window};
    const Attended attended = attend(query, key, value, call, sink);
    expect_close(attended.output, expected);
    const AttentionGradients found =
        attend_backward(gradient, query, key, value, attended, call, sink);
    expect_close(found.query, of_expected[0]);
    expect_close(found.key, of_expected[1]);
    expect_close(found.value, of_expected[2]);
    expect_close(found.sink, of_expected[3]);
  }
}

}  // namespace
}  // namespace models
