// Linear layers split over the tensor ranks (Shoeybi et al. 2019; sequence parallelism: Korthikanti
// et al. 2022). Inputs are [sequence, batch, width].
//
// Column parallel: output features are split. Under sequence parallelism the input holds a part of
// the sequence; it is gathered for the product, only the part is saved, and backward gathers again.
// Row parallel: input features are split; the partial products are summed over the ranks, under
// sequence parallelism each rank keeps its part of the sequence. The bias is added after the sum.
// Duplicated (TransformerEngine's parallel_mode None): not split, nothing is gathered; under
// sequence parallelism the weight's gradient is a partial sum.
//
// With gradient accumulation fusion (megatron-lm) the weight gradient is added to the fp32 main
// gradient by the product itself and autograd gets nothing; else autograd gets a gradient of the
// weight's type.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

/// Shape and options of one linear layer; `name` is its path, ".weight" and ".bias" are appended.
struct LinearSpec {
  std::string name;
  int64_t inputs = 0;
  int64_t outputs = 0;
  bool bias = false;
  bool caller_adds_bias = false;  ///< of a column parallel layer: forward() leaves it out
  int64_t output_blocks = 1;      ///< see ParameterSpec::blocks
  /// The output layer is Megatron-LM's own in every framework of it; the others may be
  /// TransformerEngine's.
  bool output_layer = false;
  /// Of a column parallel layer that is not split: each tensor rank has all of it, for its own
  /// rows.
  bool duplicated = false;
  /// Of a column parallel layer whose caller has gathered the input, for several layers at once:
  /// see whole_input().
  bool whole_input = false;
  bool at_mark = false;                   ///< its parameters: see ParameterStore::mark_place
  std::optional<PackedRows> packed = {};  ///< of the weight
  Parameter* shared_weight = nullptr;     ///< use this weight (tied output layer) and make none
  bool shared_copy = false;
};

struct LinearCall;

/// The input of several column parallel layers, gathered once as TorchTitan does
/// (PrepareModuleInput in torch/distributed/tensor/parallel/style.py); backward sums their
/// gradients over the ranks.
at::Tensor whole_input(const ShardContext& context, const at::Tensor& input);

class ColumnParallelLinear {
 public:
  ColumnParallelLinear(ShardContext& context, ParameterStore& store, const LinearSpec& spec);
  /// [s or s/t, b, inputs] -> [s, b, outputs / t], bias added but where the caller does that.
  at::Tensor forward(const at::Tensor& input) const;
  /// The bias that the caller adds, or an undefined tensor.
  at::Tensor bias() const;

 private:
  std::shared_ptr<const LinearCall> call_;
  Parameter* bias_ = nullptr;
};

class RowParallelLinear {
 public:
  RowParallelLinear(ShardContext& context, ParameterStore& store, const LinearSpec& spec);
  /// [s, b, inputs / t] -> [s or s/t, b, outputs], without the bias.
  at::Tensor forward(const at::Tensor& input) const;
  /// The bias that the caller adds, or an undefined tensor.
  at::Tensor bias() const;

 private:
  std::shared_ptr<const LinearCall> call_;
  Parameter* bias_ = nullptr;
};

}  // namespace models
