#include "models/core_attention.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/triu.h>

#include <cmath>

#include "models/dropout.h"

namespace models {
namespace {

/// [s, b, groups, d] -> [s, b, groups * repeats, d], a copy when repeats > 1.
at::Tensor repeat_groups(const at::Tensor& tensor, int64_t repeats) {
  return repeats == 1 ? tensor : tensor.repeat_interleave(repeats, 2);
}

/// [s, b, heads, d] -> [b * heads, s, d], a view.
at::Tensor batch_of_heads(const at::Tensor& tensor) {
  return tensor.reshape({tensor.size(0), -1, tensor.size(3)}).transpose(0, 1);
}

}  // namespace

CoreAttention::CoreAttention(const ShardContext& context)
    : kind_(context.plan.training.attention), dropout_(context.plan.model.attention_dropout) {
  if (kind_ == estimator::Attention::kUnfused) {
    const int64_t sequence = context.plan.sequence_length();
    future_ = at::ones({1, sequence, sequence}, context.options().dtype(at::kBool)).triu_(1);
    context.observer.memory_lasts(future_,
                                  {estimator::MemoryCategory::kWorkspace, "attention_mask", ""});
  }
}

at::Tensor CoreAttention::forward(const at::Tensor& query,
                                  const at::Tensor& key,
                                  const at::Tensor& value) const {
  return kind_ == estimator::Attention::kFlash ? flash(query, key, value)
                                               : unfused(query, key, value);
}

at::Tensor CoreAttention::flash(const at::Tensor& query,
                                const at::Tensor& key,
                                const at::Tensor& value) const {
  const auto heads_first = [](const at::Tensor& tensor) { return tensor.permute({1, 2, 0, 3}); };
  const at::Tensor output = at::scaled_dot_product_attention(heads_first(query),
                                                             heads_first(key),
                                                             heads_first(value),
                                                             /*attn_mask=*/{},
                                                             dropout_,
                                                             /*is_causal=*/true,
                                                             /*scale=*/std::nullopt,
                                                             query.size(2) != key.size(2));
  return output.permute({2, 0, 1, 3}).reshape({query.size(0), query.size(1), -1});
}

at::Tensor CoreAttention::unfused(const at::Tensor& query,
                                  const at::Tensor& key,
                                  const at::Tensor& value) const {
  const int64_t repeats = query.size(2) / key.size(2);
  const at::Tensor q = batch_of_heads(query);
  const at::Tensor k = batch_of_heads(repeat_groups(key, repeats));
  const at::Tensor v = batch_of_heads(repeat_groups(value, repeats));
  const int64_t sequence = q.size(1);

  const at::Tensor nothing = at::empty({1, 1, 1}, q.options());  // beta = 0: never read
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  at::Tensor scores = at::baddbmm(nothing, q, k.transpose(1, 2), /*beta=*/0, scale);
  scores.masked_fill_(future_.narrow(1, 0, sequence).narrow(2, 0, sequence), -10000.0);
  const at::Tensor weights = dropout(at::_softmax(scores, -1, /*half_to_float=*/false), dropout_);

  const at::Tensor output = at::bmm(weights, v);  // [b * heads, s, d]
  return output.transpose(0, 1).reshape({sequence, query.size(1), -1});
}

}  // namespace models
