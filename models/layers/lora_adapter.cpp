#include "models/layers/lora_adapter.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>

#include "models/layers/dropout.h"

namespace models {

LoraAdapter::LoraAdapter(const ShardContext& context, ParameterStore& store, const Shape& shape)
    : dropout_(context.plan.training.lora_dropout) {
  const int64_t rank = context.plan.training.lora_rank;
  down_ = &store.add({.name = shape.name + ".lora_A.weight",
                      .full_shape = {rank, shape.inputs},
                      .adapter = true,
                      .at_mark = shape.at_mark});
  up_ = &store.add({.name = shape.name + ".lora_B.weight",
                    .full_shape = {shape.outputs, rank},
                    .initial_value = InitialValue::kZeros,
                    .adapter = true,
                    .at_mark = shape.at_mark});
}

at::Tensor LoraAdapter::add_to(const at::Tensor& output, const at::Tensor& input) const {
  const at::Tensor wide = input.to(down_->value.scalar_type());
  const at::Tensor low = at::linear(dropout(wide, dropout_), down_->value);
  at::Tensor added = at::linear(low, up_->value);
  added = added * kAdapterScaling;  // frees what the product gave before the sum is there
  return (output + added).to(output.scalar_type());
}

}  // namespace models
