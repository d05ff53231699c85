// Low-rank adapters (LoRA, Hu et al. 2021) beside linear layers whose weights do not change. An
// adapter of rank r has two matrices: [r, inputs] and [outputs, r].
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "estimator/plan/frameworks.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The linear layers of a transformer layer. Where query, key and value are one product it is
/// kQueryKeyValue, and where gate and up of a gated MLP are one it is kFirst.
enum class AdapterTarget {
  kQuery,
  kKey,
  kValue,
  kQueryKeyValue,
  kProjection,
  kGate,
  kUp,
  kFirst,
  kDown
};

struct AdapterLayer {
  AdapterTarget target;
  const char* name;  ///< that the framework gives it
  bool is_usual;     ///< has an adapter if nothing is said
};

/// What the adapters of a framework are.
struct AdapterKind {
  Adapters adapters;
  bool in_fp32;  ///< also beside weights in 16 bits; else they have the weights' type
  std::span<const AdapterLayer> layers;
};

/// That of the framework; without any layers where it has no adapters.
const AdapterKind& adapter_kind(Framework framework);

/// Every linear layer but the output layer, as peft calls them.
inline constexpr const char* kAllLinear = "all-linear";

/// Whether the plan has an adapter beside this layer.
bool has_adapter(const Plan& plan, AdapterTarget target);

/// Parameters of the adapters of all layers: all that the plan trains, if it has adapters.
int64_t adapter_parameter_count(const Plan& plan);

/// Parameters of the whole model that are trained, and those that are held.
int64_t trained_parameter_count(const Plan& plan);
int64_t held_parameter_count(const Plan& plan);

}  // namespace estimator
