// The kernels that a framework runs for the operators that a shard recorded.
//
// The shard is built of PyTorch's operators. Where the framework of the plan's dialect has one
// fused kernel for several of them, or others that keep the same, the record is right about values
// and memory but not about time: it reads and writes what the framework's kernel does not. Some
// kernels come nowhere near the memory's rate either. data/fused_kernels.json says which, what of
// their bytes the framework's kernel moves, and at what share of the rate.
#pragma once

#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

struct ExecutedKernel {
  OperatorRecord record;
  double memory_share = 1;  ///< of the memory's rate that it reaches
};

/// `operators` with the bytes that `dialect`'s kernels move, and without those that are part of
/// another's kernel.
std::vector<ExecutedKernel> executed_kernels(const std::vector<OperatorRecord>& operators,
                                             Dialect dialect);

}  // namespace estimator
