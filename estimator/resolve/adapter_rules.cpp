#include <fmt/format.h>

#include <algorithm>

#include "estimator/plan/adapters.h"
#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

/// "linear_qkv, linear_proj", by the framework's names.
std::string names_of(const AdapterKind& kind) {
  std::string names;
  for (const AdapterLayer& layer : kind.layers) {
    names += (names.empty() ? "" : ", ") + std::string(layer.name);
  }
  return names;
}

bool is_target(const AdapterKind& kind, const std::string& module) {
  const auto has_name = [&](const AdapterLayer& layer) { return layer.name == module; };
  return module == kAllLinear || std::ranges::any_of(kind.layers, has_name);
}

void check_targets(Rules& rules) {
  const Plan& plan = rules.plan();
  const AdapterKind& kind = adapter_kind(plan.training.framework);
  const std::vector<std::string>& modules = plan.training.lora_target_modules;
  for (const std::string& module : modules) {
    rules.require(is_target(kind, module),
                  fmt::format("a module that can have no adapter under {}",
                              to_string(plan.training.framework.value())),
                  "training.lora_target_modules: " + module,
                  "use all-linear, " + names_of(kind));
  }
  const bool are_targets = std::ranges::all_of(
      modules, [&](const std::string& module) { return is_target(kind, module); });
  rules.require(!are_targets || adapter_parameter_count(plan) > 0,
                "none of these layers is in the model, so that nothing would be trained",
                "training.lora_target_modules of a model without a gate in its MLP",
                "use up_proj and down_proj, or all-linear");
}

/// peft then has one adapter for the three, under a name that the model gives.
void check_packed_products(Rules& rules) {
  const Plan& plan = rules.plan();
  if (!plan.model.packed_qkv || traits_of(plan.training.framework).adapters != Adapters::kPeft) {
    return;
  }
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

/// Of an adapter's first matrix the rows are split (ColumnParallelLinear in ParallelLinearAdapter
/// of megatron/bridge/peft/utils.py), and of the frozen output layer no gradient is there to wait.
void check_bridge(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (traits_of(t.framework).adapters != Adapters::kMegatronBridge) {
    return rules.require(
        !t.lora_a2a_experimental,
        "only Megatron-Bridge's adapters can use an all-to-all",
        fmt::format("training.lora_a2a_experimental, framework = {}", to_string(t.framework)),
        "use --framework megatron-lm, or leave it out");
  }
  const int64_t ranks = plan.parallelism.tensor;
  rules.require(t.lora_rank % ranks == 0,
                "tensor ranks divide the rank of Megatron-Bridge's adapters",
                fmt::format("training.lora_rank = {}, parallelism.tensor = {}", t.lora_rank, ranks),
                fmt::format("use a rank that {} divides", ranks));
  // CheckpointFunction of Megatron-LM has no backward where no input has a gradient; beside a whole
  // layer's Megatron-Bridge asks for one.
  const bool trains_attention = has_adapter(plan, AdapterTarget::kQueryKeyValue) ||
                                has_adapter(plan, AdapterTarget::kProjection);
  rules.require(trains_attention || !recomputes(plan, RecomputeModule::kMlp),
                "nothing before the first recomputed MLP is trained, so that it has no backward",
                "training.lora_target_modules, training.recompute_modules = mlp",
                "add linear_qkv or linear_proj, or use --recompute-granularity full");
  const auto refuse = [&](bool is_given, const std::string& key, const std::string& way_out) {
    rules.require(!is_given,
                  "adapters under megatron-lm are not supported together with it",
                  fmt::format("training.lora_rank = {}, {}", t.lora_rank, key),
                  way_out);
  };
  refuse(t.fp4_format != Fp4Format::kNone, "training.fp4_format", "use --fp8-format, or 16 bits");
  refuse(plan.model.predicts_more_tokens(), "model.mtp_num_layers", "leave it out");
  refuse(plan.parallelism.defer_embedding_wgrad_compute,
         "parallelism.defer_embedding_wgrad_compute",
         "leave it out: the output layer has no gradient");
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
  refuse(t.lora_a2a_experimental, "training.lora_a2a_experimental");
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
  if (traits_of(t.framework).adapters == Adapters::kWithout) {
    return rules.require(false,
                         "adapters are those of peft under transformers' Trainer, or those of "
                         "Megatron-Bridge",
                         where,
                         "use --framework transformers or megatron-lm; `onerank exec` runs other "
                         "programs that have them");
  }
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
  check_bridge(rules);
}

}  // namespace estimator
