// Multi-latent attention (DeepSeek-V2, arXiv 2405.04434), as MLASelfAttention in
// megatron/core/transformer/multi_latent_attention.py: keys and values are computed from one narrow
// latent of each token, queries from another latent or from the token itself. The layers that make
// the latents are the same on all tensor ranks, and each rank applies them to its own part of the
// sequence; the layers that make heads from the latents are split over the ranks.
#pragma once

#include <memory>
#include <optional>

#include "models/attention/attention.h"
#include "models/attention/latent_rotary.h"
#include "models/layers/norm.h"

namespace models {

class LatentAttention final : public Attention {
 public:
  LatentAttention(ShardContext& context,
                  ParameterStore& store,
                  const std::string& name,
                  std::shared_ptr<const CoreAttention> core);

  at::Tensor forward(at::Tensor input) const override;
  at::Tensor bias() const override { return projection_.bias(); }

 private:
  template <class Module>
  at::Tensor in_scope(const char* name, const Module& module, const at::Tensor& input) const;
  torch::autograd::variable_list latents(const at::Tensor& input) const;
  torch::autograd::variable_list heads(torch::autograd::variable_list latent) const;

  ShardContext& context_;
  std::shared_ptr<const CoreAttention> core_;
  RowParallelLinear projection_;
  std::optional<ColumnParallelLinear> query_down_;  ///< none: queries are computed from the input
  std::optional<Norm> query_norm_;
  ColumnParallelLinear query_up_;
  ColumnParallelLinear key_value_down_;  ///< also makes the shared key with positions
  std::optional<Norm> key_value_norm_;
  ColumnParallelLinear key_value_up_;
  LatentRotary rotary_;
};

}  // namespace models
