// A mixture of experts in a layer: router, dispatch, this rank's experts, combine, and the shared
// experts that every token uses (MoELayer in megatron/core/transformer/moe/moe_layer.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/experts/grouped_linear.h"
#include "models/experts/router.h"
#include "models/experts/token_dispatcher.h"
#include "models/layers/feed_forward.h"
#include "models/layers/mlp.h"

namespace models {

class ExpertMlp final : public FeedForward {
 public:
  ExpertMlp(ShardContext& context,
            ParameterStore& store,
            const std::string& name,
            std::shared_ptr<const TokenDispatcher> dispatcher);
  at::Tensor forward(at::Tensor input) const override;
  at::Tensor bias() const override { return {}; }

  /// forward() in four steps, for layers that run in pieces: what is sent, with the output of the
  /// shared experts (undefined if there are none); what arrives; the outputs of this rank's experts
  /// as they are sent back; and the output, [s, b, h] for tokens [s b, h].
  struct Prepared {
    DispatchedTokens tokens;
    at::Tensor shared;
  };
  Prepared begin_tokens(const at::Tensor& input) const;
  DispatchedTokens send_tokens(DispatchedTokens prepared) const;
  at::Tensor run_tokens(DispatchedTokens& arrived) const;
  at::Tensor end_tokens(at::Tensor rows,
                        const DispatchedTokens& tokens,
                        const at::Tensor& shared,
                        at::IntArrayRef shape) const;

 private:
  /// The two layers of experts that run together: all of this rank's, or one of them.
  struct Layers {
    std::vector<int64_t> rows_of;
    GroupedLinear first, second;
  };

  at::Tensor run_together(const Layers& layers,
                          const at::Tensor& rows,
                          const at::Tensor& weights) const;
  /// The same of one expert; quantized, with rows added for its products.
  at::Tensor run_alone(const Layers& layers,
                       const at::Tensor& rows,
                       const at::Tensor& weights) const;
  at::Tensor shared_experts(const at::Tensor& input) const;
  /// Routes [tokens, h] and prepares what is sent.
  DispatchedTokens prepare(const at::Tensor& tokens, at::Tensor& shared) const;
  at::Tensor with_experts(const at::Tensor& input) const;
  at::Tensor run_experts(const DispatchedTokens& dispatched) const;
  at::Tensor run_fused(const DispatchedTokens& dispatched) const;

  ShardContext& context_;
  std::shared_ptr<const TokenDispatcher> dispatcher_;
  Router router_;
  std::vector<Layers> experts_;
  std::optional<Mlp> shared_;
  std::unique_ptr<LastTokens> last_ = std::make_unique<LastTokens>();
};

}  // namespace models
