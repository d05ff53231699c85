#include "sim/rank/determinism.h"

#include <ATen/Context.h>

namespace sim {

Determinism::Determinism(const estimator::TrainingConfig& training)
    : algorithms_(at::globalContext().deterministicAlgorithms()),
      fills_(at::globalContext().deterministicFillUninitializedMemory()) {
  at::globalContext().setDeterministicAlgorithms(training.deterministic_mode, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(training.fills_empty_tensors());
}

Determinism::~Determinism() {
  at::globalContext().setDeterministicAlgorithms(algorithms_, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(fills_);
}

}  // namespace sim
