// Seconds of one operator on one GPU, by the roofline (Williams et al. 2009) with the rates that
// GPUs reach in practice.
//
//   t = max(FLOPs / rate(shape), bytes / rate(size)) + launch
//
// The rates and their sources are in gpu_rates.h.
#pragma once

#include <array>
#include <string>

#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// The GPU and the software for which the time of operators is computed.
struct ComputeTarget {
  const Gpu& gpu;
  Dtype dtype = Dtype::kBf16;                    ///< of the plan
  Framework framework = Framework::kMegatronLm;  ///< see kernel_price.h
  AttentionKernel attention;
  int64_t experts = 1;                       ///< experts of one rank in a layer
  const Calibration* calibration = nullptr;  ///< of this GPU, or null
  double slowdown = 1;  ///< slowest GPU over a usual one, for kernels bound by arithmetic
  double speed = 1;     ///< of these, as a share of full speed (board_power.h)

  GpuRates rates() const { return GpuRates(gpu, calibration, attention, slowdown / speed); }
};

/// The target for a job on the plan's GPUs, all of which wait for the slowest one. `gpu` is the
/// plan's GPU; `calibration` may be null. Both must outlive the target.
ComputeTarget compute_target(const Plan& plan, const Gpu& gpu, const Calibration* calibration);

enum class Bound { kCompute, kMemory, kLaunch };
constexpr std::array<EnumName<Bound>, 3> enum_names(Bound) {
  return {{{Bound::kCompute, "compute"}, {Bound::kMemory, "memory"}, {Bound::kLaunch, "launch"}}};
}

struct OperatorPrice {
  double seconds = 0;  ///< on the GPU
  Bound bound = Bound::kLaunch;
};

/// The time of one call of `record`. Matrix products and attention run at the rate of their dtype;
/// everything else is bound by its bytes, which move at `memory_share` of the memory's rate. An
/// operator with neither FLOPs nor bytes takes the time of its launch. Throws UserError when the
/// GPU has no rate for the record's dtype.
OperatorPrice operator_price(const OperatorRecord& record,
                             const GpuRates& rates,
                             Dtype plan_dtype,
                             double memory_share = 1);

/// The seconds of operator_price() for one call on the target.
double operator_seconds(const OperatorRecord& record, const ComputeTarget& target);

struct ScaledProduct {
  MatmulShape shape;
  ProductScaling scaling;
};
/// Of an operator with operands [m, k] and [k, n] of such a type, and the scales of each: one, or
/// one a row or column. Two elements of 4 bits are one of its shapes. Of other shapes: a usual
/// product, scaled by rows.
ScaledProduct scaled_product(const OperatorRecord& record);

/// The type of a product's operands, as PyTorch names it: not that of the fp32 sum to which a fused
/// weight gradient adds it.
std::string operand_dtype(const OperatorRecord& record, Dtype plan_dtype);

/// GpuRates::product_speed() of an operator that is a product; else 1.
double product_speed(const OperatorRecord& record, const GpuRates& rates);

/// Whether the operator's FLOPs are those of matrix products, which are compared with the GPU's
/// peak.
bool is_matmul(const OperatorRecord& record);
bool is_attention(const OperatorRecord& record);
/// Whether it is the kernel of the fused optimizer step.
bool is_fused_adam(const OperatorRecord& record);

}  // namespace estimator
