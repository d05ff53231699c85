// Brings tokens to the ranks of their experts and back (MoEAlltoAllTokenDispatcher in
// megatron/core/transformer/moe/token_dispatcher.py):
//
//   dispatch: copy tokens by expert, all-to-all between the expert ranks, gather between those that
//             cut the same experts, sort by own expert
//   combine:  sort by rank, reduce-scatter, all-to-all, sum into the token's row
//
// Where nothing is dropped, ranks first tell each other how many tokens they send, and the host
// waits to learn it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/experts/expert_routing.h"
#include "models/experts/router.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/shard_context.h"

namespace models {

/// What the experts of this rank get: rows by expert.
struct DispatchedTokens {
  at::Tensor rows;     ///< [rows, h]
  at::Tensor weights;  ///< [rows, 1] of the router
  at::Tensor row_map;  ///< what combine needs again
  /// The rows that were sent and that arrived, and their weights: MoELayer's forward holds them to
  /// its end (custom_forward in megatron/core/transformer/moe/moe_layer.py, from core 0.13 on).
  std::vector<at::Tensor> held;
};

class TokenDispatcher {
 public:
  explicit TokenDispatcher(ShardContext& context);

  /// [tokens, topk]: the experts of this rank's tokens.
  const at::Tensor& chosen() const { return chosen_; }
  /// Rows of each expert of this rank.
  const std::vector<int64_t>& rows_of_own_experts() const { return rows_of_own_experts_; }

  DispatchedTokens dispatch(const at::Tensor& tokens, const RouterOutput& routed) const;
  /// [rows, h] of the experts' outputs -> [rows, h] for each expert rank.
  at::Tensor collect(const at::Tensor& outputs) const;
  /// And these -> [rows, h] of this rank's own tokens.
  at::Tensor send_back(const at::Tensor& rows) const;
  /// And these -> [tokens, h].
  at::Tensor combine(const at::Tensor& rows, const DispatchedTokens& dispatched) const;

 private:
  void exchange_counts(const at::Tensor& map) const;
  /// Of rows that arrived, those of each expert after the other.
  at::Tensor by_expert(const at::Tensor& arrived) const;
  Parts parts() const;

  ShardContext& context_;
  ExpertRouting routing_;
  std::vector<int64_t> sent_;      ///< rows to each expert rank
  std::vector<int64_t> received_;  ///< rows from each expert rank
  /// Rows [rank][own expert], as they arrive from the ranks of expert-tensor x expert.
  std::vector<int64_t> arriving_;
  std::vector<int64_t> rows_of_own_experts_;
  at::Tensor chosen_;         ///< [tokens, topk]
  at::Tensor permuted_;       ///< [rows]: of which token each is
  at::Tensor weight_places_;  ///< [rows]: where in the router's weights each has its own
};

}  // namespace models
