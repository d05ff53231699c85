#include "estimator/plan/layer_parameters.h"

namespace estimator {

LayerParameters layer_parameters(const ModelConfig& model, int64_t layer) {
  const int64_t all = layer_parameter_count(model, layer);
  if (!model.has_experts_in(layer)) return {.beside_experts = all, .of_experts = 0};
  const int64_t experts = model.num_experts * expert_parameter_count(model);
  return {.beside_experts = all - experts, .of_experts = experts};
}

int64_t ranks_of_experts(const Plan& plan) {
  return plan.parallelism.expert * plan.expert_tensor_size();
}

}  // namespace estimator
