#include "models/optimizer/adamw.h"

#include <ATen/ops/_fused_adamw.h>

#include "models/shard/kernel_scope.h"

namespace models {
namespace {

void step_adamw_in_fp32(const std::vector<at::Tensor>& weights,
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

std::vector<at::Tensor> in_fp32(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> wide;
  wide.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) wide.push_back(tensor.to(at::kFloat));
  return wide;
}

void copy_all(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

std::vector<at::Tensor> joined(std::initializer_list<std::vector<at::Tensor>> lists) {
  std::vector<at::Tensor> all;
  for (const std::vector<at::Tensor>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// multi_tensor_adam of TransformerEngine computes in fp32 what it reads and writes in 16 bits.
void step_adamw_with_narrow_moments(const std::vector<at::Tensor>& weights,
                                    const std::vector<at::Tensor>& gradients,
                                    const AdamwState& state,
                                    const OptimizerSettings& settings) {
  KernelScope kernel("te::multi_tensor_fused_adam");
  if (settings.device_computes) {
    const AdamwState wide{.first_moments = in_fp32(state.first_moments),
                          .second_moments = in_fp32(state.second_moments),
                          .steps = state.steps};
    step_adamw_in_fp32(weights, gradients, wide, settings);
    copy_all(state.first_moments, wide.first_moments);
    copy_all(state.second_moments, wide.second_moments);
  }
  const auto written = joined({weights, state.first_moments, state.second_moments});
  kernel.moves(joined({gradients, written}), written);
}

}  // namespace

void step_adamw(const std::vector<at::Tensor>& weights,
                const std::vector<at::Tensor>& gradients,
                const AdamwState& state,
                const OptimizerSettings& settings) {
  (settings.narrow_moments ? step_adamw_with_narrow_moments : step_adamw_in_fp32)(
      weights, gradients, state, settings);
}

}  // namespace models
