// Core attention: softmax(Q K^T / sqrt(d)) V with a causal mask. It is flash (PyTorch's flash
// kernel, which saves q, k, v, the output and a log-sum for each row), fused (the same, but the
// saved output is the tensor that the projection reads) or unfused (saves the s x s weights). If
// ranks split the sequence, flash and fused attention work across them: see ring_attention.h and
// all_to_all_attention.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <optional>

#include "models/attention/attention_kernel.h"
#include "models/attention/causal_softmax.h"
#include "models/attention/window_mask.h"
#include "models/shard/quantized.h"
#include "models/shard/shard_context.h"

namespace models {

/// Attention of this rank's rows over the keys of all ranks that have rows of the same sequence.
/// The last one is the sink, if there is one.
using AttentionAcrossRanks = std::function<at::Tensor(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

/// Where layers attend to some tokens before their own alone: a mask, or a number that the kernel
/// takes.
struct AttentionWindow {
  std::shared_ptr<const WindowMask> mask = nullptr;
  int64_t tokens = 0;
};

class CoreAttention {
 public:
  /// With a mask each call reads that of the forward that is running.
  explicit CoreAttention(const ShardContext& context,
                         int64_t chunk = 0,
                         AttentionWindow window = {});

  /// query [s, b, heads, d], key [s, b, groups, d], value [s, b, groups, e] -> [s, b, heads * e].
  /// `sink` [heads] is undefined if there is none.
  at::Tensor forward(const at::Tensor& query,
                     const at::Tensor& key,
                     const at::Tensor& value,
                     const at::Tensor& sink = {}) const;

 private:
  bool reads_batch_first() const;
  at::Tensor by_kernel(const at::Tensor& query,
                       const at::Tensor& key,
                       const at::Tensor& value,
                       const at::Tensor& sink) const;
  at::Tensor across_context(const at::Tensor& query,
                            const at::Tensor& key,
                            const at::Tensor& value,
                            const at::Tensor& sink) const;
  at::Tensor in_window(const at::Tensor& query,
                       const at::Tensor& key,
                       const at::Tensor& value) const;
  at::Tensor flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;
  at::Tensor kept_flash(const at::Tensor& query,
                        const at::Tensor& key,
                        const at::Tensor& value) const;
  at::Tensor unread_scores(at::IntArrayRef shape, const at::Tensor& query) const;
  at::Tensor unfused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

  estimator::Attention kind_;
  std::shared_ptr<OutputKeeper> keeper_;  ///< null unless layers are recomputed by operator
  /// Query, key and value are copied to [b, s, heads, d] for the flash-attn kernel, and its output
  /// is copied back (FlashAttention in transformer_engine's backends.py; CausalSelfAttention in
  /// nanotron's llama.py).
  bool batch_first_;
  /// Megatron-LM's own attention takes the input of its first product from the global memory buffer
  /// (megatron/core/transformer/dot_product_attention.py); null elsewhere.
  std::shared_ptr<FrameworkBuffers> buffers_;
  bool transformer_engine_;
  AttentionCall call_;
  const char* python_;                         ///< for host_work.h
  std::shared_ptr<const WindowMask> window_;   ///< null where no mask is read
  AttentionAcrossRanks across_context_;        ///< null if one rank has the whole sequence
  std::optional<CausalSoftmax> softmax_;       ///< unfused only
  std::optional<QuantizedProducts> products_;  ///< of attention in 8 bits on the virtual GPU
};

/// Runs core->forward(query, key, value) as a module of its own. Under Megatron-LM's selective
/// recompute only query, key and value are kept. With `copies_views` those that are views are
/// copied first; under recompute the copies are not kept, but the tensors that they are views of.
at::Tensor run_core_attention(const ShardContext& context,
                              const std::shared_ptr<const CoreAttention>& core,
                              torch::autograd::variable_list query_key_value,
                              bool copies_views = false,
                              const at::Tensor& sink = {});

}  // namespace models
