#include "estimator/plan/attention_choice.h"

#include <fmt/format.h>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

constexpr double kAmpere = 8, kHopper = 9, kBlackwell = 10;

/// Of a GPU that is not in the database, which another rule refuses: that of today's.
double compute_capability(const Plan& plan) {
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  return gpu != nullptr ? std::stod(gpu->compute_capability) : kHopper;
}

}  // namespace

std::optional<FlashObstacle> find_flash_obstacle(const Plan& plan) {
  constexpr int64_t kWidestHead = 256;
  if (plan.training.dtype == Dtype::kFp32) {
    return FlashObstacle{"needs bf16 or fp16", "training.dtype = fp32"};
  }
  const ModelConfig& m = plan.model;
  if (m.key_width() > kWidestHead) {
    return FlashObstacle{fmt::format("needs heads of at most {}", kWidestHead),
                         m.multi_latent_attention
                             ? fmt::format("model.qk_head_dim = {}, model.qk_pos_emb_head_dim = {}",
                                           m.qk_head_dim,
                                           m.qk_pos_emb_head_dim)
                             : fmt::format("model.kv_channels = {}", m.kv_channels)};
  }
  if (compute_capability(plan) < kAmpere) {
    return FlashObstacle{"needs an Ampere GPU or newer", "cluster.gpu = " + plan.cluster.gpu};
  }
  return {};
}

Attention usual_attention(const Plan& plan) {
  const TrainingConfig& t = plan.training;
  const FrameworkTraits& framework = traits_of(t.framework);
  const bool own_layers =
      framework.transformer_engine && t.transformer_impl == TransformerImpl::kLocal;
  if (own_layers || framework.unfused_attention || find_flash_obstacle(plan)) {
    return Attention::kUnfused;
  }
  if (!framework.transformer_engine) return Attention::kFlash;
  // get_attention_backend of TransformerEngine 2.9 (attention/dot_product_attention/utils.py).
  const double capability = compute_capability(plan);
  const bool refused = t.deterministic_mode && capability >= kBlackwell;
  if (capability >= kHopper && !refused) return Attention::kFused;
  return plan.model.key_width() == plan.model.value_width() ? Attention::kFlash
                                                            : Attention::kUnfused;
}

bool writes_score_gradient(const Plan& plan) {
  const double capability = compute_capability(plan);
  return plan.training.deterministic_mode && plan.training.attention == Attention::kFused &&
         capability >= kHopper && capability < kBlackwell;
}

}  // namespace estimator
