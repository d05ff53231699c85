// Brings tokens to the ranks of their experts and back (MoEAlltoAllTokenDispatcher in
// megatron/core/transformer/moe/token_dispatcher.py):
//
//   dispatch: copy tokens sorted by expert, all-to-all between the expert ranks, all-gather between
//             the expert-tensor ranks, sort by own expert
//   combine:  sort by rank, reduce-scatter, all-to-all, sum into the row of each token
//
// If no tokens are dropped, ranks first tell each other how many tokens they send, and the host
// waits for these numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/experts/expert_routing.h"
#include "models/experts/router.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/shard_context.h"

namespace models {

/// The input of this rank's experts, with rows sorted by expert.
struct DispatchedTokens {
  at::Tensor rows;     ///< [rows, h]
  at::Tensor weights;  ///< [rows, 1], from the router
  at::Tensor row_map;  ///< needed again by combine()
  /// The rows that were sent, the rows that arrived, and their weights. MoELayer's forward holds
  /// them until it ends (custom_forward in megatron/core/transformer/moe/moe_layer.py, from core
  /// 0.13 on).
  std::vector<at::Tensor> held;
};

class TokenDispatcher {
 public:
  explicit TokenDispatcher(ShardContext& context);

  /// [tokens, topk]: the experts of this rank's tokens.
  const at::Tensor& chosen() const { return chosen_; }
  /// Number of rows of each expert of this rank.
  const std::vector<int64_t>& rows_of_own_experts() const { return rows_of_own_experts_; }

  DispatchedTokens dispatch(const at::Tensor& tokens, const RouterOutput& routed) const;
  /// The first step of combine: outputs of the experts [rows, h] -> [rows, h], sorted by expert
  /// rank.
  at::Tensor collect(const at::Tensor& outputs) const;
  /// The second step: the result of collect() -> [rows, h] of this rank's own tokens.
  at::Tensor send_back(const at::Tensor& rows) const;
  /// The last step: the result of send_back() -> [tokens, h].
  at::Tensor combine(const at::Tensor& rows, const DispatchedTokens& dispatched) const;

 private:
  void exchange_counts(const at::Tensor& map) const;
  /// The rows that arrived, sorted by expert.
  at::Tensor by_expert(const at::Tensor& arrived) const;
  Parts parts() const;

  ShardContext& context_;
  ExpertRouting routing_;
  std::vector<int64_t> sent_;      ///< rows to each expert rank
  std::vector<int64_t> received_;  ///< rows from each expert rank
  /// Number of rows [rank][own expert] that arrive from each rank of expert-tensor x expert.
  std::vector<int64_t> arriving_;
  std::vector<int64_t> rows_of_own_experts_;
  at::Tensor chosen_;         ///< [tokens, topk]
  at::Tensor permuted_;       ///< [rows]: the token of each row
  at::Tensor weight_places_;  ///< [rows]: the place of each row's weight in the router's weights
};

}  // namespace models
