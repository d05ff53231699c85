// From the projections of multi-latent attention to the heads of its core: rotary positions on a
// part of each query and on the key that all heads share, which then stands behind each head's own.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include "models/attention/rotary.h"

namespace models {

/// Megatron-LM reads the turned pairs side by side and writes them as halves
/// (mla_rotary_interleaved in rope_utils.py); here they are halves from the start: the same but for
/// the order of rows in the weights.
class LatentRotary {
 public:
  explicit LatentRotary(const ShardContext& context);

  /// query [s, b, heads, qk + pos], key_value [s, b, heads, qk + v], position_key [s, b, pos] ->
  /// query and key [s, b, heads, qk + pos], value [s, b, heads, v]. In the megatron framework two
  /// fused functions, one of which writes over the query (fused_mla_yarn_rope_apply.py); else plain
  /// operators.
  torch::autograd::variable_list apply(const at::Tensor& query,
                                       const at::Tensor& key_value,
                                       const at::Tensor& position_key) const;

 private:
  bool fused_;
  int64_t key_width_, value_width_;  ///< of a head, without positions
  std::shared_ptr<FrameworkBuffers> buffers_;
  RotaryEmbedding rotary_;
};

}  // namespace models
