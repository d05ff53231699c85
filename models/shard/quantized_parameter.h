// The weights of layers that multiply in 8 or 4 bits. Either they are in these alone (Megatron-LM's
// --fp8-param-gather, --fp4-param-gather), and autograd sees them as tensors in 16 bits without
// memory; or a quantized copy is made of them in the first micro-batch of an iteration, and kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/shard/communicator.h"
#include "models/shard/parameters.h"
#include "models/shard/quantized.h"

namespace models {

struct QuantizedParameter {
  QuantizedProducts products;
  /// by_rows lies in a flat buffer, if new weights are gathered as they are kept.
  Quantized held;
};

/// What a quantized weight is read for: a forward that is run to be run again, another forward, or
/// a backward.
enum class WeightUse { kForwardAlone, kForward, kBackward };

/// Of the weight in the forward of a layer that has this input.
inline WeightUse use_in_forward(const at::Tensor& input) {
  return input.requires_grad() ? WeightUse::kForward : WeightUse::kForwardAlone;
}

class QuantizedWeight {
 public:
  /// The quantized weight as it is in this iteration.
  const Quantized& of(const Parameter& weight,
                      int64_t iteration,
                      const QuantizedProducts& products,
                      Observer& observer,
                      WeightUse use);

 private:
  void renew(const Parameter& weight, const QuantizedProducts& products, bool has_columns);

  Quantized copy_;
  int64_t iteration_ = -1;  ///< of the copy
};

/// Quantizes the value and frees its memory.
void hold_quantized(Parameter& parameter, const QuantizedProducts& products, Observer& observer);

/// New values for a part of a parameter: `weights` are elements of its flattened by_rows, `values`
/// are as many in fp32.
struct NewWeights {
  const Parameter* parameter = nullptr;
  at::Tensor weights, values;
};

/// Quantizes the parts of this rank, after the ranks of `group` (may be null) have agreed on the
/// scales of all `parameters`, of which each may have parts (quantize_master_weights in
/// transformer_engine/pytorch/tensor/utils.py). What other ranks write, and each by_columns, is not
/// up to date afterwards. All parameters have the same QuantizedProducts.
void quantize_parts(const std::vector<const Parameter*>& parameters,
                    const std::vector<NewWeights>& parts,
                    const std::shared_ptr<Communicator>& group);

}  // namespace models
