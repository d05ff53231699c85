// Communication of the tensor ranks beside matrix products, as TransformerEngine's user buffers do
// it (Megatron-LM's --tp-comm-overlap). Methods and multiprocessors are the defaults of
// initialize_ub in transformer_engine/pytorch/module/base.py (release 2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/profile/rank_profile.h"

namespace estimator {

/// How a call runs beside the product that needs its result, made its input, or just is there.
struct UserBuffer {
  std::string module_kind;      ///< of the products
  int64_t chunks = 1;           ///< of the call; one of them runs alone, to fill the pipeline
  int64_t multiprocessors = 0;  ///< that the product leaves free, from its start to its end
};

/// Empty for a call that runs alone: of other ranks, or outside of a layer's attention and MLP.
///
/// Forward, an all-gather is a ring exchange by copy engines, and a reduce-scatter follows the
/// parts of its product. Backward, calls run in bulk beside a product that does not need them; one
/// of the two all-gathers of each part is a ring exchange: they are not told apart, so each leaves
/// half as many multiprocessors free. A chunk for each tensor rank, of which one is not hidden, is
/// assumed of all.
std::optional<UserBuffer> user_buffer_of(const CollectiveRecord& record);

/// What such a call of `seconds` adds to `product_seconds`: the chunk alone, what is longer than
/// the product beside the others, and what the product loses with the multiprocessors that it
/// leaves free of those of the GPU.
double seconds_added(const UserBuffer& buffer,
                     double seconds,
                     double product_seconds,
                     int64_t gpu_multiprocessors);

}  // namespace estimator
