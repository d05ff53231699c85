#include <fmt/format.h>

#include "estimator/plan/adapters.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

void check_targets(Rules& rules) {
  const Plan& plan = rules.plan();
  for (const std::string& module : plan.training.lora_target_modules) {
    rules.require(
        module == kAllLinear || value_named<AdapterTarget>(module).has_value(),
        "a module that can have no adapter",
        "training.lora_target_modules: " + module,
        "use all-linear, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj or down_proj");
  }
  rules.require(adapter_parameter_count(plan) > 0,
                "none of these layers is in the model, so that nothing would be trained",
                "training.lora_target_modules of a model without a gate in its MLP",
                "use up_proj and down_proj, or all-linear");
}

}  // namespace

void check_adapters(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.has_adapters()) {
    rules.require(t.lora_target_modules.empty() && t.lora_dropout == 0,
                  "only adapters have this key",
                  "training.lora_target_modules or lora_dropout, training.lora_rank = 0",
                  "add --lora-rank 16, or leave it out");
    return;
  }
  const std::string where = fmt::format(
      "training.lora_rank = {}, training.framework = {}", t.lora_rank, to_string(t.framework));
  rules.require(t.framework == Framework::kTransformers,
                "adapters are those of peft under transformers' Trainer",
                where,
                "use --framework transformers; `onerank exec` runs other programs that have them");
  rules.require(!plan.model.has_experts() && !plan.model.multi_latent_attention,
                "adapters of experts and of latent attention are not supported",
                where,
                "use a dense model; `onerank exec` runs a program that has them");
  // FSDPParam of torch 2.11: "FSDP expects uniform original parameter dtype".
  rules.require(
      !plan.fully_sharded() || t.mixed_precision.value_or(false) || t.dtype == Dtype::kFp32,
      "FSDP2 refuses adapters in fp32 beside weights in 16 bits",
      where + ", training.mixed_precision = false",
      "leave out --no-mixed-precision");
  check_targets(rules);
}

}  // namespace estimator
