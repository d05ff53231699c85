// TorchTitan's mixture of experts (MoE, TokenChoiceTopKRouter and TokenReorderer in
// torchtitan/models/moe/moe.py, v0.2.2), of PyTorch's own operators: scores of all experts in fp32,
// the rows of the tokens copied in the order of their experts, grouped products, and the rows of
// each token summed in fp32. The weights scale the outputs of the experts or, with
// model.moe_apply_probs_on_input, their inputs.
//
// If the experts are divided among ranks (ExpertParallel in torchtitan/distributed/
// expert_parallel.py), these tell each other how many rows they send, the host waits for the
// numbers, and all-to-alls carry the rows to the experts and back. This is the FSDP unit of the
// experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "models/experts/expert_routing.h"
#include "models/experts/row_exchange.h"
#include "models/experts/stacked_experts.h"
#include "models/layers/feed_forward.h"
#include "models/layers/mlp.h"

namespace models {

class TokenChoiceMlp final : public FeedForward {
 public:
  TokenChoiceMlp(ShardContext& context, ParameterStore& store, const std::string& name);
  at::Tensor forward(at::Tensor input) const override { return finish(begin(std::move(input))); }
  at::Tensor begin(at::Tensor input, const Rest& rest = {}) const override;
  at::Tensor finish(const at::Tensor& begun) const override;
  at::Tensor bias() const override { return {}; }
  const ExpertBalance* balance() const override;

 private:
  /// Of the experts of each token.
  struct Choice {
    at::Tensor weights;  ///< fp32 [tokens, topk]
    at::Tensor experts;  ///< int64 [tokens, topk]
  };
  /// The rows of all tokens, sorted by expert.
  struct Order {
    at::Tensor weights;  ///< fp32 [tokens x topk]
    at::Tensor rows;     ///< int64 [tokens x topk]: the place of each in [tokens, topk]
    at::Tensor counts;   ///< [experts]
  };

  /// `tokens` is [tokens, h].
  Choice choose(const at::Tensor& tokens) const;
  at::Tensor within_groups(const at::Tensor& scores) const;
  at::Tensor counts_of(const at::Tensor& experts) const;
  Order sort(const Choice& choice) const;
  std::shared_ptr<OutputKeeper> kept_exchanges() const;
  at::Tensor exchanged(const at::Tensor& counts) const;
  at::Tensor on_all_ranks(const at::Tensor& rows, const at::Tensor& counts) const;
  at::Tensor run_experts(const at::Tensor& rows, const at::Tensor& counts) const;
  at::Tensor summed(const at::Tensor& rows, const at::Tensor& weights) const;

  ShardContext& context_;
  int64_t chunk_;
  ExpertRouting routing_;
  ArrivingRows arriving_;
  const Parameter& gate_;
  int64_t experts_unit_ = 0;  ///< that of the layer if they are none of their own
  StackedExperts experts_;
  std::optional<Mlp> shared_;
  at::Tensor chosen_;  ///< [tokens, topk]; undefined where values do not matter
  ExpertBalance balance_;
};

}  // namespace models
