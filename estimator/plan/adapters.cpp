#include "estimator/plan/adapters.h"

#include <algorithm>

#include "estimator/base/contains.h"

namespace estimator {
namespace {

/// Inputs and outputs of a linear layer together. Without a gate the first product is `up_proj`.
int64_t width_of(const ModelConfig& model, AdapterTarget target) {
  const int64_t hidden = model.hidden_size;
  switch (target) {
    case AdapterTarget::kQuery:
    case AdapterTarget::kProjection:
      return hidden + model.num_attention_heads * model.kv_channels;
    case AdapterTarget::kKey:
    case AdapterTarget::kValue:
      return hidden + model.num_query_groups * model.kv_channels;
    case AdapterTarget::kGate:
      return is_gated(model.activation) ? hidden + model.ffn_hidden_size : 0;
    case AdapterTarget::kUp:
    case AdapterTarget::kDown:
      return hidden + model.ffn_hidden_size;
  }
  return 0;
}

}  // namespace

bool has_adapter(const Plan& plan, AdapterTarget target) {
  if (!plan.training.has_adapters()) return false;
  const std::vector<std::string>& named = plan.training.lora_target_modules;
  if (named.empty()) return std::ranges::find(kDefaultTargets, target) != kDefaultTargets.end();
  return contains(named, std::string(kAllLinear)) || contains(named, to_string(target));
}

int64_t adapter_parameter_count(const Plan& plan) {
  int64_t widths = 0;
  for (const auto& [target, name] : enum_names(AdapterTarget{})) {
    if (has_adapter(plan, target)) widths += width_of(plan.model, target);
  }
  return plan.model.num_layers * plan.training.lora_rank * widths;
}

int64_t trained_parameter_count(const Plan& plan) {
  return plan.training.has_adapters() ? adapter_parameter_count(plan)
                                      : parameter_count(plan.model, plan.padded_vocab_size());
}

int64_t held_parameter_count(const Plan& plan) {
  return parameter_count(plan.model, plan.padded_vocab_size()) + adapter_parameter_count(plan);
}

}  // namespace estimator
