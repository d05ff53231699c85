#pragma once

#include <optional>

#include "comm_stub/nccl/data_types.h"

namespace nccl {

/// An operation that the caller created: a sum whose terms are first multiplied by a factor.
struct ScaledSum {
  double factor = 1;                ///< if it was given on the host
  const void* on_device = nullptr;  ///< else its address; it is read when the sum is computed
  const DataType* type = nullptr;   ///< type of the factor
};

ncclRedOp_t add_operation(const ScaledSum& sum);
/// False if there is no such operation.
bool remove_operation(ncclRedOp_t operation);
std::optional<ScaledSum> find_operation(ncclRedOp_t operation);

}  // namespace nccl
