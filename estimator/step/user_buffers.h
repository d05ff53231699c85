// Communication of the tensor ranks that overlaps with matrix products by TransformerEngine's user
// buffers (Megatron-LM's --tp-comm-overlap). The methods and the numbers of multiprocessors are the
// defaults of initialize_ub in transformer_engine/pytorch/module/base.py (release 2.1).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// The matrix products of a micro-batch, beside which calls of the tensor ranks run.
///
/// In the forward, an all-gather is a ring exchange by copy engines, and each chunk of a
/// reduce-scatter follows the part of the product that made it. In the backward, calls run as a
/// whole beside a product that does not need them, except that one of the two all-gathers of each
/// attention or MLP is a ring exchange. The two cannot be told apart, so each counts with half the
/// multiprocessors. Every call is assumed to have one chunk for each tensor rank, one of which is
/// not hidden.
class UserBuffers {
 public:
  explicit UserBuffers(const Plan& plan);
  /// Products of adapters do not count: they are Megatron-LM's own.
  void add(const OperatorRecord& product, double calls, double seconds_of_each);

  /// Seconds that a call of `seconds` adds to its product: the chunk that runs alone, the time by
  /// which the other chunks take longer than the product beside them, and the time that the product
  /// loses because it leaves some of the `gpu_multiprocessors` free. All of `seconds` if the call
  /// runs alone, because it is not of the tensor ranks, is outside a layer's attention and MLP, or
  /// is of the product that makes queries, keys and values in a plan that takes it out
  /// (tp_comm_overlap_disable_qkv): in the backward only where its weight is frozen.
  double seconds_added(const CollectiveRecord& call,
                       double seconds,
                       int64_t gpu_multiprocessors) const;

 private:
  struct Products {
    double calls = 0, seconds = 0;
  };
  bool overlaps_qkv_;
  std::vector<int64_t>
      adapter_widths_;  ///< of an adapter's inner dimension; empty without adapters
  std::map<std::pair<Direction, std::string>, Products> products_;  ///< by kind of module
};

}  // namespace estimator
