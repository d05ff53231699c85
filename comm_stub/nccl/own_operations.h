#pragma once

#include <optional>

#include "comm_stub/nccl/data_types.h"

namespace nccl {

/// A sum that the caller made, whose terms are multiplied with a factor first.
struct ScaledSum {
  double factor = 1;                ///< where it was given on the host
  const void* on_device = nullptr;  ///< else where it is when the sum is made
  const DataType* type = nullptr;   ///< of the factor
};

ncclRedOp_t add_operation(const ScaledSum& sum);
/// False if there is no such operation.
bool remove_operation(ncclRedOp_t operation);
std::optional<ScaledSum> find_operation(ncclRedOp_t operation);

}  // namespace nccl
