// Rows of tokens that travel between the expert ranks, by the routing of a mock run, in which each
// rank knows what the others send (expert_routing.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/experts/expert_routing.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/output_keeper.h"
#include "models/shard/shard_context.h"

namespace models {

/// How many rows this rank sends to each expert rank and receives from it, and who they are.
struct RowSplits {
  Group group;  ///< null if there is one rank
  std::vector<int64_t> sent;
  std::vector<int64_t> received;
  /// A functional collective of torch.distributed, which runs on a stream of its own though its
  /// result is waited for at once; else the exchange runs on the stream that asks for it.
  bool is_functional = false;

  /// Of the way back.
  RowSplits reversed() const {
    return {.group = group, .sent = received, .received = sent, .is_functional = is_functional};
  }
};

/// An all-to-all of rows [sum of sent, ...] -> [sum of received, ...]; its backward is that of the
/// way back. The keeper, which may be null, keeps its output.
at::Tensor all_to_all(const at::Tensor& rows,
                      const RowSplits& splits,
                      const std::shared_ptr<OutputKeeper>& keeper = nullptr);

struct ArrivingRows {
  RowSplits splits;
  /// Number of rows [rank][own expert] that arrive from each rank of expert-tensor x expert.
  std::vector<int64_t> from_ranks;
  std::vector<int64_t> of_own_experts;  ///< the sums over these ranks
};

/// `of_expert` is how many rows this rank has for each expert.
ArrivingRows arriving_rows(const ShardContext& context, const std::vector<int64_t>& of_expert);

}  // namespace models
