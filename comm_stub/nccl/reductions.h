#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "comm_stub/nccl/nccl_types.h"

namespace nccl {

/// Longer buffers are gradients and activations: their values are not computed.
inline constexpr size_t kLongestReducedBytes = size_t{1} << 20;

/// Whether `ranks` equal values, reduced, are another value: SUM and PROD. The average and the
/// extremes of equal values are the value; a sum that is scaled first stands for an average.
bool changes_values(ncclRedOp_t operation, int ranks);

/// Puts into `bytes`, elements of `type` (c10's name), what `ranks` equal buffers give. False for
/// types that this does not compute with.
bool reduce_bytes(
    char* bytes, size_t count, std::string_view type, ncclRedOp_t operation, int ranks);

}  // namespace nccl
