// Everything that operators of a plan are priced with on one GPU: published and assumed rates, and
// in their place what `onerank calibrate` measured, where there is such a file.
#pragma once

#include <vector>

#include "estimator/compute/attention_rate.h"
#include "estimator/compute/calibration.h"
#include "estimator/compute/matmul_rate.h"
#include "estimator/compute/memory_rate.h"

namespace estimator {

/// What a kernel costs besides its work (data/launch.json, or measured).
struct LaunchCost {
  double kernel_seconds = 0;         ///< on the GPU, from kernel to kernel
  double host_forward_seconds = 0;   ///< on the host, of an operator called from Python
  double host_backward_seconds = 0;  ///< on the host, of one called by the autograd engine
  double wait_seconds = 0;           ///< more where the host waits for every kernel

  double host_seconds(Direction direction) const {
    return direction == Direction::kBackward ? host_backward_seconds : host_forward_seconds;
  }
};

/// Of the built-in table: a published host's times, slower where the GPU comes with a slower one.
LaunchCost assumed_launch_cost(const Gpu& gpu);

class GpuRates {
 public:
  /// `calibration` may be null; it must be of this GPU, and outlive this. `slowdown`: see below.
  GpuRates(const Gpu& gpu,
           const Calibration* calibration,
           const AttentionKernel& attention = {},
           double slowdown = 1);

  const Gpu& gpu() const { return gpu_; }

  /// Seconds of what arithmetic bounds, over those that the rates say, which are a usual GPU's.
  double slowdown() const { return slowdown_; }

  /// Of a product of `dtype`. `accumulates`: it is added to an fp32 sum.
  /// Throws UserError when the GPU has no rate for the type.
  double matmul_flops_per_second(const MatmulShape& shape, Dtype dtype, bool accumulates) const;

  /// Of a causal call with 16-bit elements.
  double attention_flops_per_second(const AttentionShape& shape) const;

  /// Of a kernel that moves `bytes`; `optimizer`: the fused optimizer step.
  double memory_bytes_per_second(double bytes, bool optimizer = false) const;

  const LaunchCost& launch() const { return launch_; }

  /// Each rate that a plan runs at, with its source, for large shapes: products of `dtype`, and
  /// attention's kernel where there is one (`flash`).
  std::vector<RateTerm> terms(Dtype dtype, bool flash) const;

 private:
  double measured_over_modelled(const MatmulShape& shape, Dtype dtype, bool accumulates) const;
  double measured_over_modelled(const AttentionShape& shape) const;

  const Gpu& gpu_;
  AttentionKernel attention_;
  double slowdown_;
  const Calibration* calibration_;
  MatmulRate matmul_;
  MemoryRate memory_;
  LaunchCost launch_;
};

}  // namespace estimator
