#pragma once

#include <cstddef>

#include "comm_stub/nccl/data_types.h"

namespace nccl {

/// The longest buffer whose values are computed. Longer ones are gradients and activations.
inline constexpr size_t kLongestReducedBytes = size_t{1} << 20;

/// The reduction of `ranks` equal buffers.
struct Reduction {
  ncclRedOp_t operation = ncclSum;  ///< one of NCCL's own operations
  int ranks = 1;
  double factor = 1;  ///< by which each rank's value is multiplied first
};

/// Whether the result can differ from the equal values that are reduced: true for SUM, PROD and
/// operations with a factor. The average and the extremes of equal values are the value itself.
bool changes_values(const Reduction& reduction);

/// Replaces the `count` elements of `type` at `bytes` by the result of the reduction, rounded to
/// the type. Whole numbers wrap around.
void reduce_bytes(char* bytes, size_t count, const DataType& type, const Reduction& reduction);

/// The number of `type` at `bytes`.
double number_at(const char* bytes, const DataType& type);

}  // namespace nccl
