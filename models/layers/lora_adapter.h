// The adapter beside a linear layer whose weight does not change (LoRA), as peft 0.18 computes it
// (Linear.forward in peft/tuners/lora/layer.py): output + B A dropout(input) x alpha / r.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

class LoraAdapter {
 public:
  /// Of the linear layer of that name, whose weight is [outputs, inputs].
  struct Shape {
    std::string name;
    int64_t inputs = 0;
    int64_t outputs = 0;
    bool at_mark = false;  ///< see ParameterStore::mark_place
  };
  LoraAdapter(const ShardContext& context, ParameterStore& store, const Shape& shape);

  /// `output` is the layer's product with `input`; the sum is of its type.
  at::Tensor add_to(const at::Tensor& output, const at::Tensor& input) const;

 private:
  Parameter* down_;  // A, [rank, inputs]
  Parameter* up_;    // B, [outputs, rank]
  double dropout_;
};

}  // namespace models
