// Which parameters Muon updates.
#pragma once

#include <cstdint>

namespace estimator {

/// Whether Muon updates a parameter with so many dimensions: matrices, but for the embedding of
/// words and the output layer (`of_vocabulary`); is_managed_by_layer_wise_optimizer in
/// Megatron-LM's layer_wise_optimizer.py. AdamW updates all others.
constexpr bool is_of_muon(int64_t dims, bool of_vocabulary) { return dims == 2 && !of_vocabulary; }

}  // namespace estimator
