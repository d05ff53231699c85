// What a user says of a program's training, which its trace does not tell.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/plan/plan.h"

namespace estimator {

struct ProgramRun {
  std::optional<int64_t> global_batch_size;  ///< samples of a step
  std::optional<int64_t> sequence_length;    ///< tokens of a sample
  std::optional<int64_t> tokens_per_step;
  std::optional<int64_t> steps;   ///< of the whole training
  std::optional<int64_t> tokens;  ///< of the whole training
  ReliabilityConfig reliability;
  std::optional<double> usd_per_gpu_hour;
  std::optional<double> gpu_deviation;
  std::optional<double> measured_step_seconds;

  /// The tokens of a step, if they are said. Throws UserError when they are said twice and differ,
  /// and for a sequence without a batch.
  std::optional<int64_t> said_tokens() const;
};

}  // namespace estimator
