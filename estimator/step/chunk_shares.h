// How the work of a stage is divided among its model chunks. A profile has only the sums over all
// chunks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Shares of the chunks of one stage. Each list has one number for each chunk; they add up to 1.
class ChunkShares {
 public:
  ChunkShares(const Plan& plan, int64_t stage, const ParametersRecord& parameters);

  /// Shares by number of layers, since layers are alike. In a stage without layers the first chunk
  /// has everything.
  const std::vector<double>& of_layers() const { return of_layers_; }
  /// Shares of what runs in a module, which is given by its kind or path. The embedding is in the
  /// first chunk, the head in the last.
  const std::vector<double>& of_module(std::string_view module) const;
  /// Shares by number of parameters.
  const std::vector<double>& of_parameters() const { return of_parameters_; }

 private:
  std::vector<double> of_layers_, of_first_, of_last_, of_parameters_;
};

}  // namespace estimator
