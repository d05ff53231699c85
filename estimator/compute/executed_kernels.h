// The kernels that a framework runs for the operators that a shard recorded.
//
// The shard is built of PyTorch's operators. Where the framework of the plan's dialect has one
// fused kernel for several of them, the record is right about values and memory but not about time:
// it reads and writes intermediate results that the fused kernel keeps in registers.
// data/fused_kernels.json says which, and what of their bytes the fused kernel moves.
#pragma once

#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// `operators` with the bytes that `dialect`'s kernels move, and without those that are part of
/// another's kernel.
std::vector<OperatorRecord> executed_kernels(const std::vector<OperatorRecord>& operators,
                                             Dialect dialect);

}  // namespace estimator
