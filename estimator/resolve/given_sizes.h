// The sizes that a model without a preset has from the user alone.
#pragma once

#include <array>
#include <cstdint>

#include "estimator/plan/model_config.h"

namespace estimator {

struct GivenSize {
  int64_t ModelConfig::*value;  ///< 0 where nobody gave it
  const char* key;              ///< in the section "model" of a plan
  const char* what;             ///< "the number of layers"
  const char* example;          ///< of a value
};
inline constexpr std::array<GivenSize, 5> kGivenSizes = {
    {{&ModelConfig::num_layers, "num_layers", "the number of layers", "32"},
     {&ModelConfig::hidden_size, "hidden_size", "the hidden size", "4096"},
     {&ModelConfig::num_attention_heads, "num_attention_heads", "the attention heads", "32"},
     {&ModelConfig::vocab_size, "vocab_size", "the size of the vocabulary", "128256"},
     {&ModelConfig::max_position_embeddings,
      "max_position_embeddings",
      "the longest sequence",
      "4096"}}};

}  // namespace estimator
