// Linear layers whose products are in 8 bits, as TransformerEngine's Linear and LayerNormLinear run
// them (transformer_engine/pytorch/module/linear.py): input, weight and output gradient are
// quantized, results stay in 16 bits. The weight in 8 bits is made in the first micro-batch of an
// iteration and kept, or it is a parameter in 8 bits (--fp8-param-gather). What an input's backward
// needs is kept in 8 bits; under sequence parallelism the parts of the ranks are gathered in 8
// bits, too.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "models/layers/parallel_linear.h"
#include "models/shard/eight_bit_parameter.h"
#include "models/shard/eight_bits.h"

namespace models {

class EightBitLayer {
 public:
  EightBitLayer(const ShardContext& context, const LinearSpec& spec, bool is_row);

  /// The weight as it is in this iteration.
  const EightBits& weight(const LinearCall& call);

  const EightBitProducts products;
  const bool row_parallel;
  const bool keeps_input;  ///< in 16 bits, since attention keeps it anyway
  const bool frees_input;  ///< as soon as it is there in 8 bits: nobody else needs it

 private:
  Observer& observer_;
  EightBitWeight weight_;
};

/// Whether the plan's products, and this layer's, are in 8 bits.
bool is_in_eight_bits(const ShardContext& context, const LinearSpec& spec);
/// Null if the plan's products, or this layer's, are in 16 bits.
std::shared_ptr<EightBitLayer> make_eight_bit_layer(const ShardContext& context,
                                                    const LinearSpec& spec,
                                                    bool row_parallel);

/// What ColumnParallelLinear::forward and RowParallelLinear::forward return.
at::Tensor eight_bit_linear(const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const std::shared_ptr<const LinearCall>& call);

}  // namespace models
