// The time of one kernel of a rank: what operator_price() says of it, slower where PyTorch's or a
// framework's kernel stays far below the memory's rate, and together with the products that the
// same call issues. data/kernels.json lists these kernels with their sources.
#pragma once

#include <optional>
#include <string_view>

#include "estimator/compute/compute_time.h"
#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// What bounds a kernel of PyTorch or of a framework that moves memory.
struct MemoryBound {
  /// Of the memory's rate. What a kernel needs beyond the time of its memory is work of the
  /// multiprocessors: on a GPU with another memory it takes as long, on one with other
  /// multiprocessors the longer the fewer they are.
  double memory_share = 1;
  /// Of one that gives each channel to one block: with few channels most multiprocessors are idle.
  /// A block of another GPU is taken to be as fast. 0: it is none of these.
  double least_seconds = 0;
};

/// `framework` is the plan's, if a plan was run: some rows hold only for what it ran on. `launched`
/// is the name of the kernel that the operator launched, if that is known.
MemoryBound memory_bound(const OperatorRecord& kernel,
                         std::optional<Framework> framework,
                         const Gpu& gpu,
                         std::string_view launched = {});

/// The products of a rank's experts that TransformerEngine issues in one call run side by side.
/// Then it is one product's part of the time of all.
OperatorPrice kernel_price(const OperatorRecord& kernel,
                           const GpuRates& rates,
                           const ComputeTarget& target);

/// What a torch._grouped_mm of 16-bit elements, of two matrices or of a matrix and one for each
/// group, is priced as: a batch of products of its groups' mean size, with the FLOPs for which
/// cuBLAS would take as long. Other operators stay as they are.
OperatorRecord as_batch_of_groups(OperatorRecord kernel);

/// Seconds that the host takes to issue one kernel of a plan.
double issue_seconds(const OperatorRecord& kernel, const LaunchCost& launch);

}  // namespace estimator
