// Which attention kernel a framework takes where the plan does not say, and what it needs.
#pragma once

#include "estimator/plan/plan.h"

namespace estimator {

/// Megatron-LM with TransformerEngine: cuDNN's from compute capability 9 on, else flash-attn's,
/// which needs keys and values of one width (get_attention_backend in
/// transformer_engine/pytorch/attention/dot_product_attention/utils.py); its own layers and
/// Megatron-DeepSpeed of 2022 know only unfused. Every other framework: flash. Unfused where
/// PyTorch's flash kernel cannot run: find_flash_obstacle.
Attention usual_attention(const Plan& plan);

/// Why no flash kernel runs the plan, in words; where: the key that says so. Empty: one does
/// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
struct FlashObstacle {
  std::string what;
  std::string where;
};
std::optional<FlashObstacle> find_flash_obstacle(const Plan& plan);

/// Whether cuDNN's backward writes the gradient of all scores, as it does where it must be
/// deterministic on Hopper, before version 9.25 (NVIDIA/cudnn-frontend pull request 398).
bool writes_score_gradient(const Plan& plan);

}  // namespace estimator
