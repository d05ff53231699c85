// Communication of the tensor ranks that overlaps with matrix products by TransformerEngine's user
// buffers (Megatron-LM's --tp-comm-overlap). The methods and the numbers of multiprocessors are the
// defaults of initialize_ub in transformer_engine/pytorch/module/base.py (release 2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/profile/rank_profile.h"

namespace estimator {

/// How a call overlaps with a matrix product: the one that needs its result, the one that makes its
/// input, or one that is independent of it.
struct UserBuffer {
  std::string module_kind;      ///< kind of module of the products
  int64_t chunks = 1;           ///< pieces of the call; one runs alone, to fill the pipeline
  int64_t multiprocessors = 0;  ///< that the whole product leaves free for the call
};

/// The overlap of a call. Empty for a call that runs alone, because it is not of the tensor ranks
/// or is outside a layer's attention and MLP.
///
/// In the forward, an all-gather is a ring exchange by copy engines, and each chunk of a
/// reduce-scatter follows the part of the product that made it. In the backward, calls run as a
/// whole beside a product that does not need them, except that one of the two all-gathers of each
/// attention or MLP is a ring exchange. The two cannot be told apart, so each counts with half the
/// multiprocessors. Every call is assumed to have one chunk for each tensor rank, one of which is
/// not hidden.
std::optional<UserBuffer> user_buffer_of(const CollectiveRecord& record);

/// Seconds that such a call of `seconds` adds to a product of `product_seconds`: the chunk that
/// runs alone, the time by which the other chunks take longer than the product beside them, and the
/// time that the product loses because it leaves some of the `gpu_multiprocessors` free.
double seconds_added(const UserBuffer& buffer,
                     double seconds,
                     double product_seconds,
                     int64_t gpu_multiprocessors);

}  // namespace estimator
