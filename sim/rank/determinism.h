// Switches PyTorch's deterministic algorithms on while a rank runs.
#pragma once

#include "estimator/plan/plan.h"

namespace sim {

/// If the plan is deterministic, does what torch.use_deterministic_algorithms does, and undoes it
/// when it is destroyed.
class Determinism {
 public:
  explicit Determinism(const estimator::TrainingConfig& training);
  ~Determinism();
  Determinism(const Determinism&) = delete;
  Determinism& operator=(const Determinism&) = delete;

 private:
  bool algorithms_, fills_;  ///< settings before
};

}  // namespace sim
