// A mixture of experts in a layer: router, dispatch, this rank's experts, combine, and the shared
// experts that every token uses (MoELayer in megatron/core/transformer/moe/moe_layer.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

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
  at::Tensor forward(const at::Tensor& input) const override;
  at::Tensor bias() const override { return {}; }

 private:
  /// What a layer's dispatcher keeps of its last tokens (dispatch_preprocess in
  /// token_dispatcher.py). The weights keep the graph that made them, and with it the graph's leaf:
  /// the input of a recomputed layer or of a stage, with its gradient, is held until the layer runs
  /// again.
  struct LastTokens {
    at::Tensor weights, map, row_map;
  };

  at::Tensor run_experts(const DispatchedTokens& dispatched) const;

  ShardContext& context_;
  std::shared_ptr<const TokenDispatcher> dispatcher_;
  Router router_;
  GroupedLinear first_;
  GroupedLinear second_;
  std::optional<Mlp> shared_;
  std::unique_ptr<LastTokens> last_ = std::make_unique<LastTokens>();
};

}  // namespace models
