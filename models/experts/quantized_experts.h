// What a grouped linear layer in 8 or 4 bits has besides its weights.
#pragma once

#include <vector>

#include "models/experts/grouped_linear_call.h"
#include "models/shard/delayed_scales.h"
#include "models/shard/quantized_parameter.h"

namespace models {

struct QuantizedExperts {
  QuantizedProducts products;
  bool keeps_input;  ///< in 16 bits, and quantizes it again: it is computed again, too
  Observer& observer;
  std::vector<QuantizedWeight> copies;  ///< of each expert's weight
  ScaledModule scales;
};

/// The weights as they are in this iteration.
std::vector<Quantized> weights_of(const GroupedLinearCall& call, WeightUse use);

}  // namespace models
