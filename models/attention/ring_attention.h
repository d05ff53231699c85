// Attention of context ranks that pass keys and values around a ring and attend to one rank's after
// the other's (Liu et al. 2023, arXiv 2310.01889), as TransformerEngine's AttnFuncWithCPAndKVP2P
// does and with what it keeps: the query, the keys and values that came last, output and log-sum
// (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, 2.11).
//
// A rank works on its own keys under the causal mask; of those of an earlier rank all its queries
// see the first half; those of a later rank are seen, whole, by the second half of its queries.
//
// TransformerEngine puts every other step on a second stream. Here all are on one: the bytes are
// the same, what the allocator reserves for them may not be.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/attention/attention_kernel.h"
#include "models/shard/communicator.h"

namespace models {

class RingAttention {
 public:
  /// `group`'s ranks have their own chunks of the sequence.
  RingAttention(std::shared_ptr<Communicator> group, const AttentionCall& call)
      : group_(std::move(group)), call_(call) {}

  /// This rank's rows, laid out as AttentionCall says, contiguous -> the same rows attended, with
  /// heads and width as one dim.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

 private:
  std::shared_ptr<Communicator> group_;
  AttentionCall call_;
};

}  // namespace models
