#include "estimator/resolve/subject_rules.h"

#include "estimator/plan/frameworks.h"
#include "estimator/plan/quantization.h"

namespace estimator {
namespace {

constexpr const char* kKey = "training.optimizer_cpu_offload";

/// Keys that say how to offload mean nothing where nothing is offloaded.
void check_unused_offload_keys(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const TrainingConfig defaults;
  const auto unused = [&](bool is_default, const std::string& key) {
    rules.require(is_default,
                  "the key is only for optimizer offload",
                  fmt::format("training.{} without {}", key, kKey),
                  "add --optimizer-cpu-offload, or leave it out");
  };
  unused(t.optimizer_offload_fraction == defaults.optimizer_offload_fraction,
         "optimizer_offload_fraction");
  unused(!t.overlap_cpu_optimizer_d2h_h2d, "overlap_cpu_optimizer_d2h_h2d");
  unused(t.pin_cpu_grads, "pin_cpu_grads");
  unused(t.pin_cpu_params, "pin_cpu_params");
  rules.require(!rules.plan().time.cpu_adam_parameters_per_second,
                "the key is only for optimizer offload",
                fmt::format("time.cpu_adam_parameters_per_second without {}", kKey),
                "add --optimizer-cpu-offload, or leave it out");
  // use_precision_aware_optimizer_no_fp8_or_ds_fp8 in megatron/core/optimizer/optimizer_config.py
  const bool keeps_masters = t.fp8_format != Fp8Format::kNone && quantization_of(t).finds_scale;
  rules.require(!t.use_precision_aware_optimizer || keeps_masters,
                "the precision-aware optimizer keeps only 16 bits of each master weight on the GPU "
                "(store_param_remainders), which is not supported, unless the recipe of 8-bit "
                "products is another one than delayed",
                fmt::format("training.use_precision_aware_optimizer without {}", kKey),
                "add --optimizer-cpu-offload, or leave it out");
}

}  // namespace

void check_optimizer_offload(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.optimizer_cpu_offload) return check_unused_offload_keys(rules);
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds, what, fmt::format("{}, {}", kKey, where), help);
      };
  rules.require(
      t.optimizer_offload_fraction >= 0 && t.optimizer_offload_fraction <= 1,
      "a fraction is not in [0, 1]",
      fmt::format("training.optimizer_offload_fraction = {}", t.optimizer_offload_fraction),
      "use 1 for all parameters, 0.5 for half of them");
  require(traits_of(t.framework).optimizer_cpu_offload,
          "optimizer offload is supported only as in Megatron-LM, not as FSDP2's CPUOffloadPolicy, "
          "DeepSpeed's ZeRO-Offload and others",
          fmt::format("training.framework = {}", to_string(t.framework)),
          "use --framework megatron-lm, or leave the optimizer on the GPU");
  // megatron/training/arguments.py asks for --use-precision-aware-optimizer, and that one for the
  // distributed optimizer (megatron/core/optimizer/__init__.py) and for Adam (optimizer_config.py).
  require(plan.parallelism.zero_stage == 1,
          "Megatron-LM offloads only its distributed optimizer",
          fmt::format("parallelism.zero_stage = {}", plan.parallelism.zero_stage.value()),
          "add --use-distributed-optimizer");
  require(t.optimizer == Optimizer::kAdamw,
          "Megatron-LM offloads only AdamW",
          fmt::format("training.optimizer = {}", to_string(t.optimizer)),
          "use adamw");
  // HybridDeviceOptimizer hands gradients to its fp32 copies of 16-bit parameters; an fp32
  // parameter that stays on the GPU would get none.
  require(t.dtype != Dtype::kFp32,
          "Megatron-LM's hybrid optimizer updates fp32 copies of 16-bit parameters",
          "training.dtype = fp32",
          "use bf16 or fp16");
}

}  // namespace estimator
