// The kernels that a framework runs for the operators that a shard recorded.
//
// The shard is built of PyTorch's operators. Where the framework of the plan's framework has one
// fused kernel for several of them, or others that keep the same, the record is right about values
// and memory but not about time: it reads and writes what the framework's kernel does not. Some
// kernels come nowhere near the memory's rate either. data/fused_kernels.json says which, what of
// their bytes the framework's kernel moves, and at what share of the rate. Products of several
// experts run side by side.
#pragma once

#include <vector>

#include "estimator/compute/compute_time.h"
#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

struct ExecutedKernel {
  OperatorRecord record;
  double memory_share = 1;  ///< of the memory's rate that it reaches
  int64_t group = 1;        ///< as many of them are issued by one call, and run side by side
};

/// `operators` with the bytes that `framework`'s kernels move, and without those that are part of
/// another's kernel. `experts` of one rank.
std::vector<ExecutedKernel> executed_kernels(const std::vector<OperatorRecord>& operators,
                                             Framework framework,
                                             int64_t experts = 1);

/// Of one kernel: its part of a group's time.
OperatorPrice kernel_price(const ExecutedKernel& kernel, const GpuRates& rates, Dtype plan_dtype);

/// What the host takes to issue one: its part of the call, and its own launch in the call's loop.
double issue_seconds(const ExecutedKernel& kernel, const LaunchCost& launch);

}  // namespace estimator
