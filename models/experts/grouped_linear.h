// The same linear layer for several experts, each with its own weight and its own rows. It runs one
// matrix product for each expert, as TransformerEngine's GroupedLinear does with cuBLAS
// (transformer_engine/pytorch/module/grouped_linear.py), in 16, 8 or 4 bits. Weights are split over
// the expert-tensor ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

struct GroupedLinearSpec {
  std::string name;          ///< path of the experts; a weight is name.EXPERT.layer.weight
  std::string layer;         ///< "linear_fc1"
  int64_t first_expert = 0;  ///< this rank's first expert, numbered in the model
  int64_t experts = 0;       ///< number of experts of this rank
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t sharded_dim = 0;  ///< dim along which a weight [outputs, inputs] is split
  int64_t output_blocks = 1;
  bool bias = false;
  bool caller_adds_bias = false;  ///< see GroupedLinear::biases()
  /// The input is discarded after the product, and computed again in the backward pass.
  bool input_is_computed_again = false;
};

struct GroupedLinearCall;

class GroupedLinear {
 public:
  GroupedLinear(ShardContext& context, ParameterStore& store, const GroupedLinearSpec& spec);
  /// [rows, inputs] -> [rows, outputs], or this rank's part of inputs or outputs. `rows_of` has the
  /// number of rows of each expert.
  at::Tensor forward(const at::Tensor& input, const std::vector<int64_t>& rows_of) const;
  const std::shared_ptr<const GroupedLinearCall>& call() const { return call_; }
  /// Of each expert, [outputs]: those that the caller adds, or none.
  std::vector<at::Tensor> biases() const;

 private:
  std::shared_ptr<const GroupedLinearCall> call_;
  std::vector<const Parameter*> left_to_caller_;
};

}  // namespace models
