// A model of which only the size is known: "13b", "350m", "1.5T".
#pragma once

#include <optional>
#include <string>

#include "estimator/base/json.h"
#include "estimator/plan/model_config.h"

namespace estimator {

/// The assumed shape of a model with so many parameters, if `name` is a size (from 100 million to
/// 100 trillion); else empty. It is that of Llama (Touvron et al. 2023), continued: heads of 128,
/// 128 of width for each layer, the nearest width of a multiple of 8 heads (of 1 for small models),
/// a gated MLP of 8 h / 3 rounded up to a multiple of 256, RMSNorm, rotary positions, no biases,
/// 32,000 tokens of which embedding and output layer each have a row, and as many layers (in
/// fours from 16 on) as come nearest to the size. 7b and 13b are Llama's own shapes.
std::optional<ModelPreset> sized_model(const std::string& name);

/// The preset of this name, or the model of this size.
std::optional<ModelPreset> named_model(const std::string& name);

/// A number of the model that a plan's tree means: its own, or an override, or that of the model
/// that it names. Empty if it means none.
std::optional<int64_t> number_of_model(const Json& tree,
                                       const std::string& key,
                                       int64_t ModelConfig::*of_named);

/// Whether the model that a plan's tree means has experts.
bool names_experts(const Json& tree);

/// "40 layers of width 5,120 with 40 heads, ..."
std::string shape_words(const ModelConfig& model);

}  // namespace estimator
