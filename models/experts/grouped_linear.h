// The same linear layer of several experts, each on its own rows: one product for each, as
// TransformerEngine's GroupedLinear runs them with cuBLAS (transformer_engine/pytorch/module/
// grouped_linear.py). Weights are cut over the ranks of expert-tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

struct GroupedLinearSpec {
  std::string name;          ///< of all experts; a weight is name.EXPERT.layer.weight
  std::string layer;         ///< "linear_fc1"
  int64_t first_expert = 0;  ///< of this rank, in the model
  int64_t experts = 0;       ///< of this rank
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t sharded_dim = 0;  ///< of a weight [outputs, inputs]
  int64_t output_blocks = 1;
};

struct GroupedLinearCall;

class GroupedLinear {
 public:
  GroupedLinear(ShardContext& context, ParameterStore& store, const GroupedLinearSpec& spec);
  /// [rows, inputs] -> [rows, outputs], or this rank's part of either; `rows_of` each expert.
  at::Tensor forward(const at::Tensor& input, const std::vector<int64_t>& rows_of) const;

 private:
  std::shared_ptr<const GroupedLinearCall> call_;
};

}  // namespace models
