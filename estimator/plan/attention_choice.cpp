#include "estimator/plan/attention_choice.h"

#include <fmt/format.h>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

constexpr int kAfterBlackwell = 11;

/// Of a GPU that is not in the database, which another rule refuses: that of today's.
double compute_capability(const Plan& plan) {
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  return gpu != nullptr ? gpu->capability() : kHopper;
}

/// Whether PyTorch's cuDNN kernel reads such heads (check_cudnn_tensor_shapes in
/// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp of 2.11).
bool are_for_cudnn(const Plan& plan) {
  const double capability = compute_capability(plan);
  const bool is_hopper = capability >= kHopper && capability < kBlackwell;
  const int64_t widest = is_hopper ? 256 : 128, width = plan.model.key_width();
  return width % 8 == 0 && width <= widest;
}

/// scaled_dot_product_attention(): cuDNN's kernel where cuDNN is newer than 9.15, on GPUs of these
/// two generations (check_prefer_cudnn_attention in sdp_utils.cpp); where cuDNN's comes first, on
/// all that have a flash kernel (check_cudnn_hardware_support), but it is not deterministic
/// (check_cudnn_deterministic).
Attention torch_attention(const Plan& plan, bool cudnn_first) {
  const double capability = compute_capability(plan);
  const bool prefers_cudnn = capability >= kHopper && capability < kAfterBlackwell;
  const bool asks = cudnn_first ? !plan.training.deterministic_mode : prefers_cudnn;
  return asks && are_for_cudnn(plan) ? Attention::kFused : Attention::kFlash;
}

bool has_engines_layers(const TrainingConfig& training) {
  return traits_of(training.framework).transformer_engine &&
         training.transformer_impl == TransformerImpl::kTransformerEngine;
}

/// "model.kv_channels = 100", or the keys of multi-latent attention.
std::string width_keys(const ModelConfig& m) {
  if (!m.multi_latent_attention) return fmt::format("model.kv_channels = {}", m.kv_channels);
  return fmt::format(
      "model.qk_head_dim = {}, model.qk_pos_emb_head_dim = {}, model.v_head_dim = {}",
      m.qk_head_dim,
      m.qk_pos_emb_head_dim,
      m.v_head_dim);
}

/// flash-attn and PyTorch pad heads for their kernels. TransformerEngine refuses its flash-attn and
/// cuDNN other heads (get_attention_backend in attention/dot_product_attention/utils.py;
/// nvte_get_fused_attn_backend in common/fused_attn/fused_attn.cpp), and so does PyTorch's cuDNN
/// kernel.
bool pads_heads(const TrainingConfig& training) {
  const bool is_cudnn = training.attention.is_known() && training.attention == Attention::kFused;
  return !has_engines_layers(training) && !is_cudnn;
}

}  // namespace

std::optional<FlashObstacle> find_flash_obstacle(const Plan& plan) {
  constexpr int64_t kWidestHead = 256, kWidthMultiple = 8;
  if (plan.training.dtype == Dtype::kFp32) {
    return FlashObstacle{"needs bf16 or fp16", "training.dtype = fp32"};
  }
  const ModelConfig& m = plan.model;
  if (m.key_width() > kWidestHead) {
    return FlashObstacle{fmt::format("needs heads of at most {}", kWidestHead), width_keys(m)};
  }
  const bool is_multiple =
      m.key_width() % kWidthMultiple == 0 && m.value_width() % kWidthMultiple == 0;
  const bool is_for_context_rules = plan.parallelism.context > 1;  // unfused is no way out there
  if (!is_multiple && !pads_heads(plan.training) && !is_for_context_rules) {
    return FlashObstacle{fmt::format("needs heads whose width is a multiple of {}", kWidthMultiple),
                         width_keys(m)};
  }
  if (compute_capability(plan) < kAmpere) {
    return FlashObstacle{"needs an Ampere GPU or newer", "cluster.gpu = " + plan.cluster.gpu};
  }
  return {};
}

Attention usual_attention(const Plan& plan) {
  const TrainingConfig& t = plan.training;
  const FrameworkTraits& framework = traits_of(t.framework);
  const bool own_layers = framework.transformer_engine && !has_engines_layers(t);
  if (own_layers || framework.unfused_attention || find_flash_obstacle(plan)) {
    return Attention::kUnfused;
  }
  if (plan.model.has_sinks() && framework.softmax_offsets) return Attention::kFused;
  if (framework.torch_attention || framework.cudnn_attention_first) {
    return torch_attention(plan, framework.cudnn_attention_first);
  }
  if (!framework.transformer_engine) return Attention::kFlash;
  // get_attention_backend of TransformerEngine 2.9 (attention/dot_product_attention/utils.py).
  const double capability = compute_capability(plan);
  const bool refused = t.deterministic_mode && capability >= kBlackwell;
  if (capability >= kHopper && !refused) return Attention::kFused;
  return plan.model.key_width() == plan.model.value_width() ? Attention::kFlash
                                                            : Attention::kUnfused;
}

bool has_window_kernel(const Plan& plan) {
  const TrainingConfig& training = plan.training;
  return traits_of(training.framework).window_kernels && training.attention == Attention::kFused &&
         plan.model.attention_dropout == 0;
}

bool makes_window_mask(const Plan& plan) {
  const int64_t window = plan.model.sliding_window;
  const FrameworkTraits& framework = traits_of(plan.training.framework);
  if (window == 0 || !framework.window_masks || has_window_kernel(plan)) return false;
  const int64_t longest_without = framework.reads_mask ? window - 1 : window;
  return plan.sequence_length() > longest_without;
}

bool writes_score_gradient(const Plan& plan) {
  const double capability = compute_capability(plan);
  return plan.training.deterministic_mode && plan.training.attention == Attention::kFused &&
         capability >= kHopper && capability < kBlackwell;
}

}  // namespace estimator
