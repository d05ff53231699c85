// Sends each token to the ranks of its experts and back (MoEAlltoAllTokenDispatcher in
// megatron/core/transformer/moe/token_dispatcher.py):
//
//   dispatch: copy tokens sorted by expert, all-to-all between the expert ranks, all-gather between
//             the expert-tensor ranks, sort by own expert
//   combine:  sort by rank, reduce-scatter, all-to-all, sum into the row of each token
//
// If no tokens are dropped, ranks first tell each other how many tokens they send, and the host
// waits for these numbers.
#pragma once

#include "models/experts/expert_routing.h"
#include "models/experts/row_exchange.h"
#include "models/experts/token_dispatcher.h"
#include "models/layers/sequence_mappings.h"

namespace models {

class AllToAllDispatcher : public TokenDispatcher {
 public:
  explicit AllToAllDispatcher(ShardContext& context);

  DispatchedTokens prepare(const at::Tensor& tokens,
                           const RouterOutput& routed,
                           LastTokens& last) const override;
  DispatchedTokens dispatch(DispatchedTokens prepared, LastTokens& last) const override;
  DispatchedTokens arrange(DispatchedTokens arrived, LastTokens& last) const override;
  /// The rows sorted by expert rank.
  at::Tensor collect(const at::Tensor& outputs, const DispatchedTokens& dispatched) const override;
  at::Tensor send_back(const at::Tensor& rows) const override;
  at::Tensor combine(const at::Tensor& rows, const DispatchedTokens& dispatched) const override;

 private:
  /// Python of this method of Megatron-LM's dispatcher begins: host_work.h.
  void begin_method(const std::string& method) const;
  void exchange_counts(const at::Tensor& map) const;
  /// The rows that arrived, sorted by expert.
  at::Tensor by_expert(const at::Tensor& arrived) const;
  Parts parts() const;

  ExpertRouting routing_;
  ArrivingRows arriving_;
};

}  // namespace models
