// Seconds of one operator on one GPU: the roofline (Williams et al. 2009) with efficiencies.
//
//   t = max(FLOPs / (peak x share), bytes / (bandwidth x share)) + launch
//
// Every constant has its source in efficiency.h and data/efficiency.json.
#pragma once

#include <string>
#include <vector>

#include "estimator/hardware.h"
#include "estimator/plan.h"
#include "estimator/rank_profile.h"

namespace estimator {

/// What operators are priced for.
struct ComputeTarget {
  const Gpu& gpu;
  Dtype dtype = Dtype::kBf16;  ///< of the plan
  Dialect dialect = Dialect::kMegatronLm;
};

/// Between two kernels of an eager program: 3-5 us (assumed: the middle).
inline constexpr double kLaunchSeconds = 4e-6;

/// Seconds of one call of `record`. Matrix products and attention run at the rate of their dtype;
/// everything else is bound by its bytes. An operator of neither FLOPs nor bytes costs its launch.
/// Throws UserError when the GPU has no rate for the record's dtype.
double operator_seconds(const OperatorRecord& record, const ComputeTarget& target);

/// Sentences on the efficiencies that are assumed for this target, for the estimate's
/// `assumptions`.
std::vector<std::string> assumed_efficiencies(const ComputeTarget& target);

}  // namespace estimator
