// What each optimizer keeps of a parameter beside its weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "estimator/plan/plan.h"

namespace estimator {

/// Moments are in fp32 where a plan does not say otherwise.
inline constexpr int64_t kMomentBytes = 4;

/// Of each moment of an element on the GPU.
inline int64_t moment_bytes(const TrainingConfig& training) {
  return bytes_per_element(training.exp_avg_dtype);
}

/// Moments that an optimizer keeps for each element of a parameter.
struct MomentsRow {
  Optimizer optimizer;
  int64_t of_matrix;  ///< of the parameters that Muon updates (is_of_muon())
  int64_t of_others;
};

/// AdamW: the mean of the gradients and of their squares (Loshchilov and Hutter 2019); SGD: the
/// momentum; Muon: the momentum of matrices (Jordan et al. 2024), and AdamW's two of all others.
inline constexpr auto kMomentsOfOptimizers = std::to_array<MomentsRow>(
    {{Optimizer::kAdamw, 2, 2}, {Optimizer::kSgd, 1, 1}, {Optimizer::kMuon, 1, 2}});
static_assert(kMomentsOfOptimizers.size() == enum_names(Optimizer{}).size(), "a row for each");

constexpr const MomentsRow& moments_row(Optimizer optimizer) {
  return *std::find_if(kMomentsOfOptimizers.begin(),
                       kMomentsOfOptimizers.end(),
                       [&](const MomentsRow& row) { return row.optimizer == optimizer; });
}

/// Moments of each element of a parameter; `is_matrix` as is_of_muon() says it.
constexpr int64_t moments_of(Optimizer optimizer, bool is_matrix) {
  const MomentsRow& row = moments_row(optimizer);
  return is_matrix ? row.of_matrix : row.of_others;
}

/// Of any parameter, at least.
constexpr int64_t least_moments_of(Optimizer optimizer) {
  const MomentsRow& row = moments_row(optimizer);
  return std::min(row.of_matrix, row.of_others);
}

}  // namespace estimator
