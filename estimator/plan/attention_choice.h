// The attention kernel that a framework uses when the plan names none, and what kernels require.
#pragma once

#include <optional>

#include "estimator/plan/plan.h"

namespace estimator {

/// The attention kernel that the plan's framework uses by default. Megatron-LM with
/// TransformerEngine uses cuDNN's kernel from compute capability 9 on, else flash-attn's, which
/// needs keys and values of one width, else unfused attention, which alone takes widths that are no
/// multiples of 8, and cuDNN's on all GPUs where the softmax has learned numbers
/// (get_attention_backend in
/// transformer_engine/pytorch/attention/dot_product_attention/utils.py). Megatron-LM's own layers
/// and Megatron-DeepSpeed of 2022 have only unfused attention. Every other framework uses flash, or
/// unfused attention if PyTorch's flash kernel cannot run (find_flash_obstacle()).
Attention usual_attention(const Plan& plan);

/// Why no flash kernel can run the plan, in words; `where` is the key that causes it. Empty if a
/// flash kernel can run it (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
struct FlashObstacle {
  std::string what;
  std::string where;
};
std::optional<FlashObstacle> find_flash_obstacle(const Plan& plan);

/// Whether layers with a window run cuDNN's kernel, which skips what lies outside of it. It has no
/// dropout there (get_attention_backend, as above).
bool has_window_kernel(const Plan& plan);

/// Whether layers with a window attend by a mask, where the sequence is longer than the window.
/// transformers makes one for a sequence that is as long, too (_ignore_causal_mask_sdpa in
/// masking_utils.py of 4.57).
bool makes_window_mask(const Plan& plan);

/// Whether the backward of cuDNN's kernel writes the gradient of all attention scores. It does when
/// it must be deterministic on Hopper, before version 9.25 (NVIDIA/cudnn-frontend pull request
/// 398).
bool writes_score_gradient(const Plan& plan);

}  // namespace estimator
