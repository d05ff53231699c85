// Attention over context ranks by all-to-all (DeepSpeed Ulysses, arXiv 2309.14509): before
// attention each rank exchanges its part of the sequence for the whole sequence of some heads, and
// back afterwards. It keeps the same as TransformerEngine's AttnFuncWithCPAndQKVOA2A: query, key,
// value and output of the whole sequence for 1/ranks of the heads
// (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, 2.11).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/attention/attention_kernel.h"
#include "models/shard/communicator.h"
#include "models/shard/shard_context.h"

namespace models {

class HeadExchange;

class AllToAllAttention {
 public:
  /// Each rank of `group` has its own chunks of the sequence. The number of key/value heads must be
  /// a multiple of the size of `group`.
  AllToAllAttention(std::shared_ptr<Communicator> group,
                    const AttentionCall& call,
                    const ShardContext& context);

  /// Takes this rank's rows, contiguous and laid out as AttentionCall says. Returns the attention
  /// output for these rows, with heads and width as one dim. `sink` is that of all heads, or
  /// undefined.
  at::Tensor forward(const at::Tensor& query,
                     const at::Tensor& key,
                     const at::Tensor& value,
                     const at::Tensor& sink) const;

 private:
  std::shared_ptr<const HeadExchange> exchange_;
  AttentionCall call_;
};

}  // namespace models
