// Low-rank adapters (LoRA, Hu et al. 2021) beside linear layers whose weights do not change. An
// adapter of rank r has two matrices: [r, inputs] and [outputs, r].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The linear layers of a transformer layer, by the names that transformers gives those of Llama.
enum class AdapterTarget { kQuery, kKey, kValue, kProjection, kGate, kUp, kDown };
constexpr std::array<EnumName<AdapterTarget>, 7> enum_names(AdapterTarget) {
  return {{{AdapterTarget::kQuery, "q_proj"},
           {AdapterTarget::kKey, "k_proj"},
           {AdapterTarget::kValue, "v_proj"},
           {AdapterTarget::kProjection, "o_proj"},
           {AdapterTarget::kGate, "gate_proj"},
           {AdapterTarget::kUp, "up_proj"},
           {AdapterTarget::kDown, "down_proj"}}};
}

/// Every linear layer but the output layer, as peft calls them.
inline constexpr const char* kAllLinear = "all-linear";

/// What peft adapts of a Llama if nothing is said
/// (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING in peft/utils/constants.py, 0.18).
inline constexpr std::array kDefaultTargets = {AdapterTarget::kQuery, AdapterTarget::kValue};

/// Whether the plan has an adapter beside this layer.
bool has_adapter(const Plan& plan, AdapterTarget target);

/// Parameters of the adapters of all layers: all that the plan trains, if it has adapters.
int64_t adapter_parameter_count(const Plan& plan);

/// Parameters of the whole model that are trained, and those that are held.
int64_t trained_parameter_count(const Plan& plan);
int64_t held_parameter_count(const Plan& plan);

}  // namespace estimator
