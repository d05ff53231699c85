#include <fmt/format.h>

#include "estimator/plan/frameworks.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

/// Fusions that are on by default, and mean nothing where the framework has no such kernel.
void check_fusion_keys(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const FrameworkTraits& framework = traits_of(t.framework);
  const auto only_where = [&](bool has_kernel, bool is_on, const std::string& key) {
    rules.require(
        has_kernel || is_on,
        "the framework has no such kernel that could be off",
        fmt::format("training.{} = false, training.framework = {}", key, to_string(t.framework)),
        "leave it out, or use training.framework = megatron-lm");
  };
  only_where(framework.fused_gated_activation, t.bias_gelu_fusion, "bias_gelu_fusion");
  only_where(framework.fused_gated_activation, t.bias_swiglu_fusion, "bias_swiglu_fusion");
  only_where(framework.megatron_fusions, t.bias_dropout_fusion, "bias_dropout_fusion");
  only_where(framework.megatron_fusions, t.masked_softmax_fusion, "masked_softmax_fusion");
  only_where(framework.megatron_fusions, t.attention_softmax_in_fp32, "attention_softmax_in_fp32");
  only_where(framework.fused_rotary, t.rope_fusion, "rope_fusion");
}

}  // namespace

void check_megatron_keys(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const TrainingConfig defaults;
  const auto only_megatron = [&](bool is_default, const std::string& key) {
    rules.require(t.framework == Framework::kMegatronLm || is_default,
                  "the key belongs to Megatron-LM",
                  fmt::format("training.{}, training.framework = {}", key, to_string(t.framework)),
                  "leave it out, or use training.framework = megatron-lm");
  };
  only_megatron(t.transformer_impl == defaults.transformer_impl, "transformer_impl");
  only_megatron(t.cross_entropy_fusion == defaults.cross_entropy_fusion, "cross_entropy_fusion");
  only_megatron(t.gradient_accumulation_fusion == defaults.gradient_accumulation_fusion,
                "gradient_accumulation_fusion");
  only_megatron(!t.grad_reduce_in_bf16, "grad_reduce_in_bf16");
  rules.require(
      !t.grad_reduce_in_bf16 || t.dtype != Dtype::kFp32,
      "gradients are reduced in 16 bits only where the model trains in 16 bits",
      fmt::format("training.grad_reduce_in_bf16, training.dtype = {}", to_string(t.dtype)),
      "use --bf16 or --fp16, or leave grad_reduce_in_bf16 out");
  rules.require(!t.grad_reduce_in_bf16 || !t.optimizer_cpu_offload,
                "an optimizer on the host takes gradients in fp32 alone here",
                "training.grad_reduce_in_bf16, training.optimizer_cpu_offload",
                "leave one of them out");
  only_megatron(!t.attention_mask_in_dataloader.value_or(false), "attention_mask_in_dataloader");
  only_megatron(t.megatron_core.empty(), "megatron_core");
  rules.require(t.megatron_core.empty() || minor_version_of_core(t.megatron_core) >= 0,
                "a version of Megatron-LM's core has two or three numbers, the first of them 0",
                fmt::format("training.megatron_core = \"{}\"", t.megatron_core),
                "write 0.13 or 0.13.1");
  only_megatron(!t.check_for_nan_in_loss_and_grad.value_or(false),
                "check_for_nan_in_loss_and_grad");
  only_megatron(t.empty_unused_memory_level == 0, "empty_unused_memory_level");
  only_megatron(!t.moe_router_fusion, "moe_router_fusion");
  check_fusion_keys(rules);
}

}  // namespace estimator
