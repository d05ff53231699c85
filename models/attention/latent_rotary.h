// Makes the heads for core attention from the projections of multi-latent attention: it applies
// rotary positions to a part of each query and to the key that all heads share, and appends this
// key to each head's own key.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include "models/attention/rotary.h"

namespace models {

/// Megatron-LM reads the rotated pairs interleaved and writes them as two halves
/// (mla_rotary_interleaved in rope_utils.py). Here they are two halves from the start, which is the
/// same except for the order of rows in the weights.
class LatentRotary {
 public:
  explicit LatentRotary(const ShardContext& context);
  /// Makes the tables, unless they are there.
  void prepare() const { rotary_.tables(); }

  /// query [s, b, heads, qk + pos], key_value [s, b, heads, qk + v], position_key [s, b, pos] ->
  /// query and key [s, b, heads, qk + pos], value [s, b, heads, v]. In Megatron-LM these are two
  /// fused functions, one of which overwrites the query (fused_mla_yarn_rope_apply.py); in other
  /// frameworks they are plain operators.
  torch::autograd::variable_list apply(const at::Tensor& query,
                                       const at::Tensor& key_value,
                                       const at::Tensor& position_key) const;

 private:
  at::Tensor turn(const at::Tensor& input) const;

  bool fused_;
  bool gathers_pairs_;
  int64_t key_width_, value_width_;  ///< widths of one head, without positions
  std::shared_ptr<FrameworkBuffers> buffers_;
  RotaryEmbedding rotary_;
};

}  // namespace models
