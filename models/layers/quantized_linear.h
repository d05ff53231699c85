// Linear layers whose products are in 8 or 4 bits, as TransformerEngine's Linear and
// LayerNormLinear run them (transformer_engine/pytorch/module/linear.py): input, weight and output
// gradient are quantized, results stay in 16 bits. The quantized weight is made in the first
// micro-batch of an iteration and kept, or it is the parameter (--fp8-param-gather). What an
// input's backward needs is kept quantized; under sequence parallelism the parts of the ranks are
// gathered so, too.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "models/layers/parallel_linear.h"
#include "models/shard/delayed_scales.h"
#include "models/shard/quantized.h"
#include "models/shard/quantized_parameter.h"

namespace models {

class QuantizedLayer {
 public:
  QuantizedLayer(const ShardContext& context, const LinearSpec& spec, bool is_row);

  /// The weight as it is in this iteration: see QuantizedWeight::of.
  const Quantized& weight(const LinearCall& call, WeightUse use);

  const QuantizedProducts products;
  const bool row_parallel;
  const bool keeps_input;  ///< in 16 bits, since attention keeps it anyway
  const bool after_norm;   ///< TransformerEngine's layer with the norm before it
  const bool frees_input;  ///< as soon as it is quantized: nobody else needs it
  /// Of an input that is gathered again, beside the columns: _LayerNormLinear drops the rows of 8
  /// bits alone (transformer_engine/pytorch/module/layernorm_linear.py).
  const bool keeps_rows;
  /// The ranks that agree on the scale of an input of which each has a part; or null.
  const std::shared_ptr<Communicator> agreeing;
  ScaledModule scales;

 private:
  Observer& observer_;
  QuantizedWeight weight_;
};

/// Whether the plan's products, and this layer's, are in 8 or 4 bits.
bool is_quantized(const ShardContext& context, const LinearSpec& spec);
/// Null if the plan's products, or this layer's, are in 16 bits.
std::shared_ptr<QuantizedLayer> make_quantized_layer(const ShardContext& context,
                                                     const LinearSpec& spec,
                                                     bool row_parallel);

/// What ColumnParallelLinear::forward and RowParallelLinear::forward return. Of a weight that does
/// not change nothing is kept but `held`, quantized, if it is defined.
at::Tensor quantized_linear(const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const at::Tensor& held,
                            const std::shared_ptr<const LinearCall>& call);

}  // namespace models
