// How TorchTitan deals the layers of a model to the pieces of a pipeline.
#pragma once

#include <cstdint>
#include <vector>

namespace estimator {

struct DealtLayers {
  int64_t layers = 0;
  int64_t pieces = 1;  ///< virtual stages of all stages
  /// As how many layers embedding and head count.
  int64_t first_counts = 1;
  int64_t last_counts = 1;
};

/// Layers of each piece: those that are counted are divided evenly, and the first pieces have one
/// more where they do not divide (generate_llm_fqn_per_model_part in torchtitan/distributed/
/// pipeline_parallel.py of v0.2.2). Empty where TorchTitan refuses it: each piece gets at least as
/// many as an end counts.
std::vector<int64_t> dealt_layers(const DealtLayers& dealt);

}  // namespace estimator
