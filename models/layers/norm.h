// LayerNorm and RMSNorm over the last dimension. Like the fused kernels they save the input and, in
// fp32, the mean and the reciprocal standard deviation of each row.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/shard/shard_context.h"

namespace models {

class Norm {
 public:
  /// A norm over hidden_size, or over rows of `width`; its gradient is summed over tensor ranks
  /// where they split the sequence.
  Norm(ShardContext& context, ParameterStore& store, const std::string& name);
  Norm(ShardContext& context, ParameterStore& store, const std::string& name, int64_t width);
  /// A norm over rows of `width` elements of heads, which tensor ranks split.
  static Norm of_heads(ShardContext& context,
                       ParameterStore& store,
                       const std::string& name,
                       int64_t width);
  at::Tensor forward(const at::Tensor& input) const;
  /// It is part of the linear layer behind it, and no module by itself.
  void belongs_to_linear() {
    python_ = nullptr;
    scales_ = nullptr;
  }

 private:
  at::Tensor compute(const at::Tensor& input) const;
  at::Tensor agreed(const at::Tensor& input) const;
  at::Tensor layer_norm(const at::Tensor& input) const;

  struct Shape {
    int64_t width;
    bool is_partial;       ///< whether each tensor rank has a part of the gradient
    bool at_mark = false;  ///< for its parameters; see ParameterStore::mark_place
  };
  Norm(ShardContext& context, ParameterStore& store, const std::string& name, const Shape& of_rows);

  estimator::Normalization kind_;
  double epsilon_;
  int64_t width_;
  Parameter* weight_ = nullptr;  ///< null, or without a bias, where the model's norms have none
  Parameter* bias_ = nullptr;
  bool of_operators_;
  bool of_dtensors_;
  bool weight_in_fp32_;
  bool fused_;
  ModuleRunner* modules_;
  const char* python_;                     ///< for host_work.h
  std::shared_ptr<DelayedScales> scales_;  ///< null where none are delayed
};

}  // namespace models
