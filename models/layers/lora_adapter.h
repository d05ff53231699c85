// The adapter beside a linear layer whose weight does not change (LoRA): output + B A input x
// alpha / r.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

/// alpha / r. Its value changes neither memory nor time.
inline constexpr double kAdapterScaling = 2;

class Adapter {
 public:
  virtual ~Adapter() = default;
  /// `output` is the layer's product with `input`; the sum is of its type.
  virtual at::Tensor add_to(const at::Tensor& output, const at::Tensor& input) const = 0;
};

/// As peft 0.18 computes it (Linear.forward in peft/tuners/lora/layer.py).
class LoraAdapter final : public Adapter {
 public:
  /// Of the linear layer of that name, whose weight is [outputs, inputs].
  struct Shape {
    std::string name;
    int64_t inputs = 0;
    int64_t outputs = 0;
    bool at_mark = false;  ///< see ParameterStore::mark_place
  };
  LoraAdapter(const ShardContext& context, ParameterStore& store, const Shape& shape);

  at::Tensor add_to(const at::Tensor& output, const at::Tensor& input) const override;

 private:
  Parameter* down_;  // A, [rank, inputs]
  Parameter* up_;    // B, [outputs, rank]
  double dropout_;
};

}  // namespace models
