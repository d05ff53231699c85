// The reductions of c10d over members that all hold the same values.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstdint>

#include "comm_stub/checks.h"

namespace comm_stub {

/// Refuses what ProcessGroupNCCL refuses: an operation that NCCL does not have (bitwise operations
/// are allowed for CPU tensors), or does not have for this dtype (AVG of Bool, PREMUL_SUM of
/// integers). It also refuses all reductions of float8, although NCCL has them from compute
/// capability 9.0 on.
void check_reduce_op(const Checks& checks, const c10d::ReduceOp& op, const at::Tensor& tensor);

/// Replaces x by x op x op ... op x, in which x stands `group_size` times. As in NCCL, SUM of Bool
/// is "or".
void reduce_copies(const at::Tensor& tensor, const c10d::ReduceOp& op, int64_t group_size);

}  // namespace comm_stub
