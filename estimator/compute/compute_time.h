// Seconds of one operator on one GPU: the roofline (Williams et al. 2009) with the rates that the
// GPU really reaches.
//
//   t = max(FLOPs / rate(shape), bytes / rate(size)) + launch
//
// The rates and their sources are in gpu_rates.h.
#pragma once

#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// What operators are priced for.
struct ComputeTarget {
  const Gpu& gpu;
  Dtype dtype = Dtype::kBf16;                    ///< of the plan
  Framework framework = Framework::kMegatronLm;  ///< whose fused kernels: executed_kernels
  AttentionKernel attention;
  int64_t experts = 1;                       ///< of one rank in a layer
  const Calibration* calibration = nullptr;  ///< of this GPU, or null
  double slowdown = 1;  ///< of what arithmetic bounds: the slowest GPU over a usual one

  GpuRates rates() const { return GpuRates(gpu, calibration, attention, slowdown); }
};

/// A job of the plan's GPUs, which all wait for the slowest of them. `gpu` is the plan's;
/// `calibration` may be null. Both must outlive the target.
ComputeTarget compute_target(const Plan& plan, const Gpu& gpu, const Calibration* calibration);

enum class Bound { kCompute, kMemory, kLaunch };
constexpr std::array<EnumName<Bound>, 3> enum_names(Bound) {
  return {{{Bound::kCompute, "compute"}, {Bound::kMemory, "memory"}, {Bound::kLaunch, "launch"}}};
}

struct OperatorPrice {
  double seconds = 0;  ///< on the GPU
  Bound bound = Bound::kLaunch;
};

/// Of one call of `record`. Matrix products and attention run at the rate of their dtype;
/// everything else is bound by its bytes, which move at `memory_share` of the memory's rate. An
/// operator of neither FLOPs nor bytes costs its launch. Throws UserError when the GPU has no rate
/// for the record's dtype.
OperatorPrice operator_price(const OperatorRecord& record,
                             const GpuRates& rates,
                             Dtype plan_dtype,
                             double memory_share = 1);

/// The GPU's seconds of that.
double operator_seconds(const OperatorRecord& record, const ComputeTarget& target);

/// Whether FLOPs are those of matrix products, which are worth counting against the GPU's peak.
bool is_matmul(const OperatorRecord& record);
bool is_attention(const OperatorRecord& record);
/// The optimizer's own kernel.
bool is_fused_adam(const OperatorRecord& record);

}  // namespace estimator
