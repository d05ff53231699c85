#include <fmt/format.h>

#include <algorithm>

#include "estimator/plan/adapters.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

bool is_target(const std::string& module) {
  return module == kAllLinear || value_named<AdapterTarget>(module).has_value();
}

void check_targets(Rules& rules) {
  const Plan& plan = rules.plan();
  const std::vector<std::string>& modules = plan.training.lora_target_modules;
  for (const std::string& module : modules) {
    rules.require(
        is_target(module),
        "a module that can have no adapter",
        "training.lora_target_modules: " + module,
        "use all-linear, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj or down_proj");
  }
  const bool are_targets = std::ranges::all_of(modules, is_target);
  rules.require(!are_targets || adapter_parameter_count(plan) > 0,
                "none of these layers is in the model, so that nothing would be trained",
                "training.lora_target_modules of a model without a gate in its MLP",
                "use up_proj and down_proj, or all-linear");
}

/// peft then has one adapter for the three, under a name that the model gives.
void check_packed_products(Rules& rules) {
  const Plan& plan = rules.plan();
  if (!plan.model.packed_qkv) return;
  const std::vector<std::string>& modules = plan.training.lora_target_modules;
  const bool names_parts = std::ranges::any_of(modules, [](const std::string& module) {
    return module == "q_proj" || module == "k_proj" || module == "v_proj";
  });
  rules.require(!modules.empty() && !names_parts,
                "query, key and value of this model are one product, which has one adapter",
                modules.empty() ? "training.lora_target_modules = [] (q_proj, v_proj)"
                                : "training.lora_target_modules, model.packed_qkv",
                "use all-linear, or o_proj, up_proj and down_proj; `onerank exec` runs the program "
                "with the adapters that it has");
}

void refuse_keys_of_adapters(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const auto refuse = [&](bool is_given, const std::string& key) {
    rules.require(!is_given,
                  "only adapters have this key",
                  key + ", training.lora_rank = 0",
                  "add --lora-rank 16, or leave it out");
  };
  refuse(!t.lora_target_modules.empty(), "training.lora_target_modules");
  refuse(t.lora_dropout != 0, "training.lora_dropout");
}

}  // namespace

void check_adapters(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.has_adapters()) {
    return refuse_keys_of_adapters(rules);
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
  check_packed_products(rules);
}

}  // namespace estimator
