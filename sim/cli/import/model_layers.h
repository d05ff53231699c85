// Which layers of a model in a config.json of transformers have what others of them lack.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/base/json.h"

namespace sim {

/// A whole number from 0 to 1e9 of a tree; 0 where it has none.
int64_t whole_number(const estimator::Json& tree, const char* key);

/// Writes moe_layer_freq, window_attn_skip_freq and no_rope_freq of a plan's model whose number of
/// layers, experts and window are there. `without_rope` says where rotary positions are missing: in
/// layers that "no_rope_layers" lists, or in those without a window ("no_window").
void set_layer_patterns(const estimator::Json& config,
                        const std::string& without_rope,
                        estimator::Json& model);

}  // namespace sim
