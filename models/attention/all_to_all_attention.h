// Attention of context ranks that exchange the sequence for heads before it, and back after it
// (DeepSpeed Ulysses, arXiv 2309.14509), as TransformerEngine's AttnFuncWithCPAndQKVOA2A does and
// with what it keeps: query, key, value and output of the whole sequence and 1/ranks of the heads
// (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, 2.11).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/attention/attention_kernel.h"
#include "models/shard/communicator.h"

namespace models {

class HeadExchange;

class AllToAllAttention {
 public:
  /// `group`'s ranks have their own chunks of the sequence; its size divides the key/value heads.
  AllToAllAttention(std::shared_ptr<Communicator> group,
                    const AttentionCall& call,
                    const at::Device& device);

  /// This rank's rows, laid out as AttentionCall says, contiguous -> the same rows attended, with
  /// heads and width as one dim.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

 private:
  std::shared_ptr<const HeadExchange> exchange_;
  AttentionCall call_;
};

}  // namespace models
