// How what a stage does is shared out over its chunks, from a profile that tells them together.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Shares of one stage's chunks; each list adds up to 1.
class ChunkShares {
 public:
  ChunkShares(const Plan& plan, int64_t stage, const ParametersRecord& parameters);

  /// Layers are alike. A stage without layers does everything in its first chunk.
  const std::vector<double>& of_layers() const { return of_layers_; }
  /// Of what runs in a module, by its kind or path: the embedding is in the first chunk, the head
  /// in the last.
  const std::vector<double>& of_module(std::string_view module) const;
  /// Of the shard's elements.
  const std::vector<double>& of_parameters() const { return of_parameters_; }

 private:
  std::vector<double> of_layers_, of_first_, of_last_, of_parameters_;
};

}  // namespace estimator
