// Softmax of the scores of unfused attention, under a causal mask. Frameworks differ in who makes
// the mask, how long it lives, and in which type the weights are computed.
//
// TransformerEngine makes a mask in every forward and joins it with the data loader's, where a
// stage has one, of each sequence (get_full_mask in attention/dot_product_attention/utils.py). Its
// kernel reads it, keeps the weights alone, and in backward writes the gradient over the one that
// it is given (softmax.py of 2.17). Scores that the kernel does not take go through PyTorch's
// operators: cast to fp32, masked with both that mask and a cached one, of which the fp32 weights
// and the joined mask are kept (forward_torch_softmax).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

class CausalSoftmax {
 public:
  /// Of layers of a chunk.
  CausalSoftmax(const ShardContext& context, int64_t chunk);

  /// [1 or b, s, s] bool, true where a key lies in the future: made for one call, or lasting.
  at::Tensor mask(int64_t sequence) const;
  /// scores [b * heads, s, s] -> weights of the same shape and type. May overwrite the scores.
  at::Tensor forward(const at::Tensor& scores, const at::Tensor& mask) const;

 private:
  at::Tensor in_fp32(const at::Tensor& scores, const at::Tensor& mask) const;

  bool transformer_engine_;
  bool device_computes_;
  at::Device device_;
  std::shared_ptr<FrameworkBuffers> buffers_;
  int64_t masked_sequences_ = 0;  ///< for which the data loader has masks
  at::Tensor lasting_mask_;       ///< undefined where each call makes its own
};

/// Whether TransformerEngine's kernel supports scores of shape [batches, s, s] (is_kernel_available
/// in softmax.py).
bool softmax_kernel_takes(int64_t batches, int64_t sequence, at::ScalarType type);

}  // namespace models
