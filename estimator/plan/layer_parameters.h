// The parameters of a layer by the ranks that share them.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace estimator {

struct LayerParameters {
  int64_t beside_experts = 0;  ///< shared by tensor ranks
  int64_t of_experts = 0;      ///< shared by expert and expert tensor ranks; 0 of a dense layer
};

/// Of one transformer layer of the whole model; `layer` counts all layers from 0.
LayerParameters layer_parameters(const ModelConfig& model, int64_t layer);

/// The ranks that share the parameters of experts.
int64_t ranks_of_experts(const Plan& plan);

}  // namespace estimator
