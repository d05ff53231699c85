#pragma once

#include <cstddef>

#include "comm_stub/nccl/data_types.h"

namespace nccl {

/// Longer buffers are gradients and activations: their values are not computed.
inline constexpr size_t kLongestReducedBytes = size_t{1} << 20;

/// What `ranks` equal buffers become.
struct Reduction {
  ncclRedOp_t operation = ncclSum;  ///< NCCL's own
  int ranks = 1;
  double factor = 1;  ///< that each rank's value is multiplied with first
};

/// Whether it makes another value of equal ones: SUM, PROD, and what has a factor. The average and
/// the extremes of equal values are the value.
bool changes_values(const Reduction& reduction);

/// Puts into `bytes`, elements of `type`, what the reduction gives, rounded to the type. Whole
/// numbers wrap around.
void reduce_bytes(char* bytes, size_t count, const DataType& type, const Reduction& reduction);

/// The number of `type` at `bytes`.
double number_at(const char* bytes, const DataType& type);

}  // namespace nccl
