// Attention over context ranks in a ring (Liu et al. 2023, arXiv 2310.01889): the ranks pass keys
// and values around the ring, and each rank attends to those of one rank after the other. It keeps
// the same as TransformerEngine's AttnFuncWithCPAndKVP2P: the query, the keys and values that
// arrived last, the output and the log-sum
// (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, 2.11).
//
// For its own keys a rank uses the causal mask. Of the keys of an earlier rank, all its queries see
// the first half. All keys of a later rank are seen, but only by the second half of its queries.
//
// TransformerEngine runs every other step on a second stream. Here all steps run on one stream: the
// allocated bytes are the same, but the bytes that the allocator reserves for them may differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/attention/attention_kernel.h"
#include "models/shard/communicator.h"

namespace models {

class RingAttention {
 public:
  /// Each rank of `group` has its own chunks of the sequence.
  RingAttention(std::shared_ptr<Communicator> group, const AttentionCall& call)
      : group_(std::move(group)), call_(call) {}

  /// Takes this rank's rows, contiguous and laid out as AttentionCall says. Returns the attention
  /// output for these rows, with heads and width as one dim.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

 private:
  std::shared_ptr<Communicator> group_;
  AttentionCall call_;
};

}  // namespace models
