// The kernels that a framework runs for the operators that a shard recorded.
//
// The shard is built from PyTorch's operators. The plan's framework may have one fused kernel for
// several of them, or other kernels that keep the same tensors. Then the recorded operators are
// right about values and memory but not about time, because they read and write bytes that the
// framework's kernel does not. Some kernels also stay far below the memory's rate.
// data/fused_kernels.json lists these kernels, the share of the recorded bytes that each moves, and
// the share of the memory's rate that it reaches. Matrix products of several experts run at the
// same time.
#pragma once

#include <vector>

#include "estimator/compute/compute_time.h"
#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

struct ExecutedKernel {
  OperatorRecord record;
  double memory_share = 1;  ///< share of the memory's rate that it reaches
  int64_t group = 1;        ///< kernels that one call issues and that run at the same time
};

/// `operators` with the bytes that `framework`'s kernels move, and without operators that are part
/// of another operator's kernel. `experts` is the number of experts of one rank.
std::vector<ExecutedKernel> executed_kernels(const std::vector<OperatorRecord>& operators,
                                             Framework framework,
                                             int64_t experts = 1);

/// The time of one kernel: its part of the time of its group.
OperatorPrice kernel_price(const ExecutedKernel& kernel, const GpuRates& rates, Dtype plan_dtype);

/// Seconds that the host takes to issue one kernel: its part of the call, and its own launch in the
/// loop of that call.
double issue_seconds(const ExecutedKernel& kernel, const LaunchCost& launch);

}  // namespace estimator
