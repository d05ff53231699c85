// Sends each token once to each rank that has one of its experts, by the kernels of DeepEP or
// HybridEP (MoEFlexTokenDispatcher in megatron/core/transformer/moe/token_dispatcher.py, and
// fused_a2a.py):
//
//   DeepEP: dispatch the tokens, copy them sorted by own expert; sum the rows of each arrived
//   token,
//           combine
//   HybridEP: gather which experts the tokens of all ranks have; dispatch to rows sorted by own
//           expert, across domains from a buffer; combine from them
//
// These libraries have buffers of their own, which do not belong to PyTorch's allocator. The host
// waits for the number of tokens of each own expert. This is for a device that does not compute:
// how many tokens arrive is a mean. On others AllToAllDispatcher moves the same tokens.
#pragma once

#include <algorithm>
#include <optional>

#include "models/experts/all_to_all_dispatcher.h"

namespace models {

struct LibraryCall;

class FlexDispatcher final : public AllToAllDispatcher {
 public:
  explicit FlexDispatcher(ShardContext& context);

  DispatchedTokens prepare(const at::Tensor& tokens,
                           const RouterOutput& routed,
                           LastTokens& last) const override;
  DispatchedTokens dispatch(DispatchedTokens prepared, LastTokens& last) const override;
  DispatchedTokens arrange(DispatchedTokens arrived, LastTokens& last) const override;
  /// HybridEP: the rows as they are; DeepEP: [arrived tokens, h].
  at::Tensor collect(const at::Tensor& outputs, const DispatchedTokens& dispatched) const override;
  at::Tensor send_back(const at::Tensor& rows) const override;
  at::Tensor combine(const at::Tensor& rows, const DispatchedTokens& dispatched) const override;

 private:
  /// What a call keeps for those that follow: which token is where.
  at::Tensor make_handle(const at::Tensor& tokens) const;
  /// What HybridEP does before it dispatches. `map` [tokens, experts]: which experts get which
  /// token.
  void find_ways(const at::Tensor& map) const;
  /// `weights`: of a token.
  LibraryCall call_of(int64_t weights) const;
  void wait_for_counts(const at::Tensor& tokens) const;
  void check_budget() const;
  DispatchedTokens permuted(DispatchedTokens arrived, LastTokens& last) const;
  /// The tokens that a library's kernels sort by expert: all that arrive, or with DeepEP none.
  int64_t sorted_tokens() const { return is_hybrid_ ? std::min(arriving_tokens_, rows_) : 0; }

  bool is_hybrid_, is_copied_ = false;
  int64_t tokens_, rows_, arriving_tokens_;
  std::optional<int64_t> budget_;  ///< rows that there is memory for; none: as many as come
  int64_t handle_bytes_;
  at::Tensor order_;           ///< [rows]: of which arrived token each row is
  mutable at::Tensor handle_;  ///< from dispatch to combine
  mutable at::Tensor over_budget_;
};

}  // namespace models
