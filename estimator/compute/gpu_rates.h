// All rates from which the time of a plan's operators on one GPU is computed. They are published or
// assumed; a file of `onerank calibrate` replaces them with measured ones.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/compute/attention_rate.h"
#include "estimator/compute/board_power.h"
#include "estimator/compute/calibration.h"
#include "estimator/compute/matmul_rate.h"
#include "estimator/compute/memory_rate.h"

namespace estimator {

/// What is priced: a shard's operators, each of which stands for all kernels and memsets that it
/// launches, or the kernels of a program one by one.
enum class Priced { kOperators, kKernels };

/// What a kernel costs besides its work (data/launch.json, or measured).
struct LaunchCost {
  double kernel_seconds = 0;         ///< on the GPU, from kernel to kernel
  double host_call_seconds = 0;      ///< on the host, for each kernel, copy or collective
  double host_operator_seconds = 0;  ///< on the host, for each operator and node
  /// On the host, for a further kernel that an operator launches in a loop.
  double host_loop_seconds = 0;
  /// On the host, by the name of a range that a library opens for profilers: what Python does in
  /// it, without operators and kernels.
  std::map<std::string, double> host_ranges;
  double wait_seconds = 0;          ///< added when the host waits for every kernel
  double graph_kernel_seconds = 0;  ///< on the GPU, from kernel to kernel of a CUDA graph
  double graph_launch_seconds = 0;  ///< on the host, for a CUDA graph

  /// On the host, of a kernel, copy or collective with this name before which so many operators ran
  /// since the last. Where an operator launches kernels in a loop, the further ones take no more
  /// than their launch, and so do all that a library launches from C++ (data/launch.json).
  double call_seconds(int64_t operators, bool is_of_operator, std::string_view name = {}) const;

  /// The host takes so many times as long.
  void slow_host(double times);
};

/// Whether LaunchCost has a price for the range.
bool is_host_range(std::string_view name);

/// The cost from the built-in table: the host's times as they were measured, and for GPUs that come
/// with another host as much longer as a Linear takes there.
LaunchCost assumed_launch_cost(const Gpu& gpu, Priced priced = Priced::kOperators);

/// `launch` where the framework stands for one with an old torch: on the host as much longer as the
/// backward of a small LayerNorm took.
LaunchCost with_torch_of(Framework framework, LaunchCost launch);

class GpuRates {
 public:
  /// `calibration` may be null; else it must be of this GPU and outlive this object.
  GpuRates(const Gpu& gpu,
           const Calibration* calibration,
           const AttentionKernel& attention = {},
           double slowdown = 1,
           Priced priced = Priced::kOperators);

  const Gpu& gpu() const { return gpu_; }

  /// How much longer kernels that are bound by arithmetic take on this GPU than the rates say; the
  /// rates are those of a usual GPU.
  double slowdown() const { return slowdown_; }

  /// Of the board: where a step would need more than it gives, its products and attention run below
  /// these rates. Null if nobody measured it, and with a calibration.
  const BoardPower* power() const { return power_; }
  /// The share of full speed at which a product runs by these rates; of matrices in 8 or 4 bits
  /// with `scaling`. 1 for the kernels of a program: those of a plan have the rates that products
  /// sustain back to back, as they come in a step.
  double product_speed(const MatmulShape& shape, std::optional<ProductScaling> scaling) const;

  /// Rate of a matrix product in `dtype`; `accumulates` says that it is added to an fp32 sum.
  /// Throws UserError when the GPU has no rate for the type.
  double matmul_flops_per_second(const MatmulShape& shape, Dtype dtype, bool accumulates) const;
  /// Of another type's tensor cores (TF32, FP64, INT8): the share of this `peak` that bf16 reaches
  /// of its own (assumed); 0 on a GPU without them.
  double flops_per_second_as_bf16(const std::optional<double>& peak,
                                  const MatmulShape& shape) const;

  /// Of a product of FP64; 0 if the GPU's rate is not known.
  double fp64_flops_per_second(const MatmulShape& shape) const;

  /// Rate of a product of matrices in 8 or 4 bits. If nothing is published for the GPU and scaling,
  /// it has the share of its peak that bf16 has of its own (assumed). 0 if the GPU has none.
  double scaled_flops_per_second(const MatmulShape& shape, ProductScaling scaling) const;

  /// Rate of a call; of fp32 elements where the shape says so, else of 16-bit ones.
  double attention_flops_per_second(const AttentionShape& shape) const;

  /// Rate of a kernel that moves `bytes`; `optimizer` says that it is the fused optimizer step.
  double memory_bytes_per_second(double bytes, bool optimizer = false) const;

  const LaunchCost& launch() const { return launch_; }

  /// The rates for large shapes, with their sources: matrix products in `dtype`, the attention
  /// kernel if there is one (`flash`), the memory, and launches.
  std::vector<RateTerm> terms(Dtype dtype, bool flash) const;

 private:
  std::vector<RateTerm> launch_terms() const;
  MatmulRate usual_rate(const MatmulRate& rate) const;
  MatmulRate at_full_speed(MatmulRate rate) const;
  double measured_over_modelled(const MatmulShape& shape, Dtype dtype, bool accumulates) const;
  double measured_over_modelled(const AttentionShape& shape) const;

  const Gpu& gpu_;
  AttentionKernel attention_;
  double slowdown_;
  Priced priced_;
  const Calibration* calibration_;
  const BoardPower* power_;
  MatmulRate matmul_;
  MatmulRate matmul_of_single_elements_;
  MemoryRate memory_;
  LaunchCost launch_;
};

}  // namespace estimator
