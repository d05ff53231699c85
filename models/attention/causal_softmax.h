// Softmax of the scores of unfused attention, under a causal mask. Frameworks differ in who makes
// the mask, how long it lives, and in which type the weights are computed.
//
// TransformerEngine makes a mask in every forward and combines it with the data loader's mask of
// each sequence, if the stage has one (get_full_mask in attention/dot_product_attention/utils.py).
// Its softmax kernel reads the mask, keeps only the weights, and in backward overwrites the
// incoming gradient with its own (softmax.py of 2.17). Scores of shapes that the kernel does not
// support go through PyTorch's operators: they are cast to fp32 and masked with that mask and a
// cached one; the fp32 weights and the combined mask are kept (forward_torch_softmax).
//
// Megatron-LM's own layers have a kernel for causal masks, of fewer keys. Scores that it does not
// support are masked and go through PyTorch's softmax, in fp32 where the plan says so
// (FusedScaleMaskSoftmax in megatron/core/fusions/fused_softmax.py).
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

class CausalSoftmax {
 public:
  /// For the layers of a chunk.
  CausalSoftmax(const ShardContext& context, int64_t chunk);

  /// The mask, [1 or b, s, s] bool, true where a key lies in the future. It is made for one call or
  /// kept for all, depending on the framework.
  at::Tensor mask(int64_t sequence) const;
  /// scores [b * heads, s, s] -> weights of the same shape and type. May overwrite the scores.
  at::Tensor forward(const at::Tensor& scores, const at::Tensor& mask) const;

 private:
  bool has_kernel_for(const at::Tensor& scores) const;
  at::Tensor with_cached(const at::Tensor& mask) const;
  at::Tensor in_fp32(const at::Tensor& scores, const at::Tensor& mask) const;

  bool transformer_engine_;
  bool megatron_;            ///< Megatron-LM's own layers, or TransformerEngine's
  int64_t most_fused_keys_;  ///< of the framework's own kernel; 0: it has none, or is off
  bool widens_;              ///< what is not fused is in fp32
  bool device_computes_;
  at::Device device_;
  std::shared_ptr<FrameworkBuffers> buffers_;
  int64_t masked_sequences_ = 0;  ///< for which the data loader has masks; may be 0
  at::Tensor lasting_mask_;       ///< undefined if each call makes its own
};

/// Whether TransformerEngine's kernel supports scores of shape [batches, s, s] (is_kernel_available
/// in softmax.py).
bool softmax_kernel_takes(int64_t batches, int64_t sequence, at::ScalarType type);

/// The same of the kernel of Megatron-LM's own layers (is_kernel_available in fused_softmax.py),
/// which takes at most `most_keys` keys.
bool causal_softmax_kernel_takes(int64_t batches,
                                 int64_t sequence,
                                 at::ScalarType type,
                                 int64_t most_keys);

}  // namespace models
