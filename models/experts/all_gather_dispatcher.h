// Brings all tokens to all ranks that hold a set of all experts, and sums what their experts make
// of them (MoEAllGatherTokenDispatcher in megatron/core/transformer/moe/token_dispatcher.py):
//
//   dispatch: all-gather of tokens, weights and map, copy own experts' tokens sorted by expert
//   combine:  sum into the row of each token of all ranks, reduce-scatter
//
// The host waits for the number of tokens of each own expert.
#pragma once

#include <vector>

#include "models/experts/token_dispatcher.h"

namespace models {

class AllGatherDispatcher final : public TokenDispatcher {
 public:
  explicit AllGatherDispatcher(ShardContext& context);

  DispatchedTokens prepare(const at::Tensor& tokens,
                           const RouterOutput& routed,
                           LastTokens& last) const override;
  DispatchedTokens dispatch(DispatchedTokens prepared, LastTokens& last) const override;
  /// [tokens of all ranks, h]
  at::Tensor collect(const at::Tensor& outputs, const DispatchedTokens& dispatched) const override;
  at::Tensor send_back(const at::Tensor& rows) const override;
  at::Tensor combine(const at::Tensor& rows, const DispatchedTokens& dispatched) const override;

 private:
  /// [tokens of all ranks, h], in Megatron-LM's global memory buffer.
  at::Tensor gathered(const at::Tensor& tokens) const;
  at::Tensor of_own_experts(const at::Tensor& of_all) const;

  int64_t tokens_ = 0;  ///< of all ranks
};

}  // namespace models
