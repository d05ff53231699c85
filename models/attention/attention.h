// Self-attention of one layer, whose heads are split over the tensor ranks (MHA, GQA and MQA). If
// there are fewer key/value heads than tensor ranks, several ranks use the same head.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "models/attention/core_attention.h"
#include "models/attention/rotary.h"
#include "models/layers/norm.h"
#include "models/layers/parallel_linear.h"

namespace models {

/// The attention of one layer.
class Attention {
 public:
  Attention() = default;
  virtual ~Attention() = default;
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  /// [s or s/t, b, h] -> the same shape. The output bias is not added yet; see bias(). An input
  /// that is given away lives until its products are there.
  virtual at::Tensor forward(at::Tensor input) const = 0;
  virtual at::Tensor bias() const = 0;
};

/// The output projection (linear_proj), from the values of all heads back to hidden_size. `name` is
/// the path of the attention.
LinearSpec projection_spec(const ShardContext& context, const std::string& name);

class SelfAttention final : public Attention {
 public:
  SelfAttention(ShardContext& context,
                ParameterStore& store,
                const std::string& name,
                std::shared_ptr<const CoreAttention> core,
                std::shared_ptr<const RotaryEmbedding> rotary);

  at::Tensor forward(at::Tensor input) const override;
  at::Tensor bias() const override { return projection_->bias(); }

 private:
  struct Heads {
    at::Tensor query, key, value;               // [s, b, heads or groups, d]
    torch::autograd::variable_list as_product;  // without positions, if attention keeps them
  };
  bool shares_groups() const;
  bool separates_heads() const;
  bool recomputes_views() const;
  bool recomputes_copies() const;
  bool has_own_layers() const;
  bool keeps_packed_value() const;
  at::Tensor own_groups(const at::Tensor& packed) const;
  at::Tensor own_queries(const at::Tensor& of_group) const;
  Heads normalized(Heads heads) const;
  Heads turned(Heads heads) const;
  Heads split_heads(const at::Tensor& product) const;
  Heads separate_heads(const at::Tensor& input) const;
  Heads unstack(const at::Tensor& packed) const;
  torch::autograd::variable_list held_by_variables(Heads heads) const;

  ShardContext& context_;
  std::shared_ptr<const CoreAttention> core_;
  std::shared_ptr<const RotaryEmbedding> rotary_;  // null: learned positions, or none
  const Parameter* sink_ = nullptr;                // null: none
  std::vector<ColumnParallelLinear> qkv_;          // one layer for all three, or one for each
  std::optional<RowParallelLinear> projection_;    // made before or after them
  std::optional<Norm> query_norm_, key_norm_;      // over each head, or all
};

}  // namespace models
