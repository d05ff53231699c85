#include "estimator/plan/megatron_core.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "estimator/base/text.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/quantization.h"
#include "estimator/plan/rule_list.h"

namespace estimator {
namespace {

/// Of "0.13.1" the 13; -1 for what is no version of 0.
int minor_version(std::string_view text) {
  if (!text.starts_with("0.")) return -1;
  text.remove_prefix(2);
  int minor = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minor);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool is_patch = rest.starts_with('.') && is_digits(rest.substr(1));
  return error == std::errc() && (rest.empty() || is_patch) ? minor : -1;
}

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

bool output_stand_in_lasts(const TrainingConfig& training) {
  constexpr int kFirst = 14;
  return training.megatron_core.empty() || minor_version(training.megatron_core) >= kFirst;
}

GatherStart gather_start(const Plan& plan) {
  constexpr int kFirst = 9;
  const std::string& version = plan.training.megatron_core;
  if (!version.empty() && minor_version(version) < kFirst) return GatherStart::kFirstWithStep;
  return plan.parallelism.virtual_stages > 1 ? GatherStart::kAllWithStep : GatherStart::kAtFirstUse;
}

bool gathers_in_turn(const Plan& plan) {
  return plan.parallelism.pipeline > 1 && gather_start(plan) == GatherStart::kAtFirstUse;
}

bool overlaps_linear_backward(const Plan& plan) {
  constexpr int kFirst = 1;
  const std::string& version = plan.training.megatron_core;
  return traits_of(plan.training.framework).overlapped_linear_backward &&
         !plan.parallelism.tp_comm_overlap && (version.empty() || minor_version(version) >= kFirst);
}

int64_t fused_softmax_keys(const TrainingConfig& training) {
  constexpr int64_t kOfMegatron = 4096, kOfNeox = 2048;
  const bool has_kernel = traits_of(training.framework).megatron_fusions;
  if (!has_kernel || !training.masked_softmax_fusion) return 0;
  const bool is_first = minor_version(training.megatron_core) == 0;  // had no core
  return training.framework == Framework::kMegatronLm && !is_first ? kOfMegatron : kOfNeox;
}

namespace {

/// Weights that are gathered in the memory of the gradients wait until all optimizers have read
/// these: since core 0.18 (_should_defer_mxfp8_param_sync in megatron/core/optimizer/optimizer.py).
bool gathers_after_all_steps(const TrainingConfig& training) {
  constexpr int kFirst = 18;
  const std::string& version = training.megatron_core;
  return training.fp8_param_gather && quantization_of(training).gathers_in_16_bits &&
         (version.empty() || minor_version(version) >= kFirst);
}

}  // namespace

int gathers_with_experts(const Plan& plan) {
  const bool chained = traits_of(plan.training.framework).chained_optimizers &&
                       !plan.parallelism.overlap_param_gather;
  return chained && !gathers_after_all_steps(plan.training) ? 2 : 1;
}

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
  rules.require(t.megatron_core.empty() || minor_version(t.megatron_core) >= 0,
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
