// Brings tokens to the ranks of their experts and back (megatron/core/transformer/moe/
// token_dispatcher.py). How many tokens go where is in the mock routing (expert_routing.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/experts/router.h"
#include "models/shard/shard_context.h"

namespace models {

/// What this rank sends, after dispatch() what it gets, and after arrange() the input of its
/// experts, with rows sorted by expert.
struct DispatchedTokens {
  at::Tensor rows;     ///< [rows, h]
  at::Tensor weights;  ///< [rows, 1], from the router
  at::Tensor row_map;  ///< needed again by combine()
  /// What was sent and what arrived. MoELayer's forward holds it until it ends (custom_forward in
  /// megatron/core/transformer/moe/moe_layer.py, from core 0.13 on).
  std::vector<at::Tensor> held;
};

/// What a layer's dispatcher keeps of its last tokens (dispatch_preprocess in token_dispatcher.py).
/// The weights keep the graph that made them, and with it the graph's leaf: the input of a
/// recomputed layer or of a stage, with its gradient, is held until the layer runs again.
struct LastTokens {
  at::Tensor weights, map, row_map;
};

class TokenDispatcher {
 public:
  virtual ~TokenDispatcher() = default;

  /// [tokens, topk]: the experts of this rank's tokens.
  const at::Tensor& chosen() const { return chosen_; }
  /// Number of rows of each expert of this rank.
  const std::vector<int64_t>& rows_of_own_experts() const { return rows_of_own_experts_; }

  /// dispatch_preprocess(): without a word to other ranks, but for how many tokens they get.
  virtual DispatchedTokens prepare(const at::Tensor& tokens,
                                   const RouterOutput& routed,
                                   LastTokens& last) const = 0;
  virtual DispatchedTokens dispatch(DispatchedTokens prepared, LastTokens& last) const = 0;
  /// dispatch_postprocess(): what arrived, sorted by expert where dispatch() has not done so.
  virtual DispatchedTokens arrange(DispatchedTokens arrived, LastTokens& /*last*/) const {
    return arrived;
  }
  /// The first step of combine: outputs of the experts [rows, h], in the order in which they are
  /// sent back.
  virtual at::Tensor collect(const at::Tensor& outputs,
                             const DispatchedTokens& dispatched) const = 0;
  /// The second step: the result of collect() -> what this rank gets of it.
  virtual at::Tensor send_back(const at::Tensor& rows) const = 0;
  /// The last step: the result of send_back() -> [tokens, h].
  virtual at::Tensor combine(const at::Tensor& rows, const DispatchedTokens& dispatched) const = 0;

 protected:
  explicit TokenDispatcher(ShardContext& context) : context_(context) {}

  /// Moves the tables to the device: experts of this rank's tokens; for each row that its experts
  /// are given or that it sends, the token, and the place of its weight.
  void make_tables(const std::vector<int64_t>& chosen,
                   const std::vector<int64_t>& permuted,
                   const std::vector<int64_t>& weight_places);
  /// The map that permute_tokens() keeps, [tokens, 2 x experts + 1].
  static at::Tensor make_row_map(const at::Tensor& tokens, int64_t count, int64_t experts);

  ShardContext& context_;
  std::vector<int64_t> rows_of_own_experts_;
  at::Tensor permuted_;       ///< [rows]
  at::Tensor weight_places_;  ///< [rows]: in the flattened weights

 private:
  at::Tensor chosen_;
};

/// The dispatcher that the plan names. Its tables are made once for all layers.
std::shared_ptr<const TokenDispatcher> make_token_dispatcher(ShardContext& context);

}  // namespace models
