// PyTorch's deterministic algorithms, while a rank runs.
#pragma once

#include "estimator/plan/plan.h"

namespace sim {

/// Does what torch.use_deterministic_algorithms does for such a plan, and undoes it at its end.
class Determinism {
 public:
  explicit Determinism(const estimator::TrainingConfig& training);
  ~Determinism();
  Determinism(const Determinism&) = delete;
  Determinism& operator=(const Determinism&) = delete;

 private:
  bool algorithms_, fills_;  ///< as they were
};

}  // namespace sim
