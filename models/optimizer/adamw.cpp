#include "models/optimizer/adamw.h"

#include <ATen/ops/_fused_adamw.h>

namespace models {

void step_adamw(const std::vector<at::Tensor>& weights,
                const std::vector<at::Tensor>& gradients,
                const AdamwState& state,
                const OptimizerSettings& settings) {
  at::_fused_adamw_(weights,
                    gradients,
                    state.first_moments,
                    state.second_moments,
                    /*max_exp_avg_sqs=*/{},
                    state.steps,
                    settings.learning_rate,
                    settings.beta1,
                    settings.beta2,
                    settings.weight_decay,
                    settings.epsilon,
                    /*amsgrad=*/false,
                    /*maximize=*/false);
}

}  // namespace models
