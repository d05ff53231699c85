#include "estimator/plan/adapters.h"

#include <algorithm>
#include <array>

#include "estimator/base/contains.h"

namespace estimator {
namespace {

/// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING of Llama in peft/utils/constants.py, 0.18.
constexpr std::array kPeftLayers = {AdapterLayer{AdapterTarget::kQuery, "q_proj", true},
                                    AdapterLayer{AdapterTarget::kKey, "k_proj", false},
                                    AdapterLayer{AdapterTarget::kValue, "v_proj", true},
                                    AdapterLayer{AdapterTarget::kProjection, "o_proj", false},
                                    AdapterLayer{AdapterTarget::kGate, "gate_proj", false},
                                    AdapterLayer{AdapterTarget::kUp, "up_proj", false},
                                    AdapterLayer{AdapterTarget::kDown, "down_proj", false}};

/// LoRA in megatron/bridge/peft/lora.py.
constexpr std::array kMegatronLayers = {
    AdapterLayer{AdapterTarget::kQueryKeyValue, "linear_qkv", true},
    AdapterLayer{AdapterTarget::kProjection, "linear_proj", true},
    AdapterLayer{AdapterTarget::kFirst, "linear_fc1", true},
    AdapterLayer{AdapterTarget::kDown, "linear_fc2", true}};

/// In fp32: autocast_adapter_dtype of peft. Megatron-Bridge casts them as the model (lora_dtype is
/// None).
constexpr std::array kKinds = {
    AdapterKind{.adapters = Adapters::kWithout, .in_fp32 = false, .layers = {}},
    AdapterKind{.adapters = Adapters::kPeft, .in_fp32 = true, .layers = kPeftLayers},
    AdapterKind{
        .adapters = Adapters::kMegatronBridge, .in_fp32 = false, .layers = kMegatronLayers}};

/// Inputs and outputs of a linear layer together. Without a gate the first product is `up_proj`.
int64_t width_of(const ModelConfig& model, AdapterTarget target) {
  using enum AdapterTarget;
  const int64_t hidden = model.hidden_size;
  switch (target) {
    case kQuery:
    case kProjection:
      return hidden + model.num_attention_heads * model.kv_channels;
    case kKey:
    case kValue:
      return hidden + model.num_query_groups * model.kv_channels;
    case kQueryKeyValue:
      return hidden + (model.num_attention_heads + 2 * model.num_query_groups) * model.kv_channels;
    case kGate:
      return is_gated(model.activation) ? hidden + model.ffn_hidden_size : 0;
    case kFirst:
      return hidden + (is_gated(model.activation) ? 2 : 1) * model.ffn_hidden_size;
    case kUp:
    case kDown:
      return hidden + model.ffn_hidden_size;
  }
  return 0;
}

}  // namespace

const AdapterKind& adapter_kind(Framework framework) {
  const Adapters adapters = traits_of(framework).adapters;
  return *std::ranges::find(kKinds, adapters, &AdapterKind::adapters);
}

bool has_adapter(const Plan& plan, AdapterTarget target) {
  if (!plan.training.has_adapters()) return false;
  const auto layers = adapter_kind(plan.training.framework).layers;
  const auto layer = std::ranges::find(layers, target, &AdapterLayer::target);
  if (layer == layers.end()) return false;
  const std::vector<std::string>& named = plan.training.lora_target_modules;
  if (named.empty()) return layer->is_usual;
  return contains(named, std::string(kAllLinear)) || contains(named, std::string(layer->name));
}

int64_t adapter_parameter_count(const Plan& plan) {
  int64_t widths = 0;
  for (const AdapterLayer& layer : adapter_kind(plan.training.framework).layers) {
    if (has_adapter(plan, layer.target)) widths += width_of(plan.model, layer.target);
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

Dtype TrainingConfig::parameter_dtype() const {
  if (mixed_precision.value_or(false)) return Dtype::kFp32;
  return has_adapters() && adapter_kind(framework).in_fp32 ? Dtype::kFp32 : dtype;
}

}  // namespace estimator
