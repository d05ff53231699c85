// Linear layers split over the tensor ranks (Shoeybi et al. 2019; sequence parallelism: Korthikanti
// et al. 2022). Inputs are [sequence, batch, width].
//
// Column parallel: output features are split. Under sequence parallelism the input is a part of the
// sequence; the whole sequence is gathered for the product, but only the part is saved, and
// backward gathers it again. Row parallel: input features are split. The partial products are
// summed over the ranks; under sequence parallelism each rank keeps its part of the sequence. The
// bias is added after the sum. Duplicated (TransformerEngine's parallel_mode None): nothing is
// split or gathered. Under sequence parallelism the gradient of the weight is a partial sum.
//
// With gradient accumulation fusion (megatron-lm) the product itself adds the weight gradient to
// the fp32 main gradient, and autograd gets nothing. Else autograd gets a gradient of the weight's
// type. These products of the output layer may be deferred to the pipeline's flush; see
// compute_deferred_gradients().
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "estimator/plan/adapters.h"
#include "models/layers/lora_adapter.h"
#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

/// Shape and options of one linear layer. `name` is its path, to which ".weight" and ".bias" are
/// appended.
struct LinearSpec {
  std::string name;
  int64_t inputs = 0;
  int64_t outputs = 0;
  bool bias = false;
  bool caller_adds_bias = false;         ///< column parallel: forward() does not add the bias
  int64_t output_blocks = 1;             ///< see ParameterSpec::blocks
  std::vector<int64_t> group_rows = {};  ///< see Parameter
  /// It is the output layer, which is Megatron-LM's own unless its products are in 8 bits
  /// (--fp8-output-proj), as are the layers of adapters; the other linear layers may be
  /// TransformerEngine's.
  bool output_layer = false;
  bool quantized_output = false;
  /// For a column parallel layer: it is not split; each tensor rank has all of it and applies it to
  /// its own rows.
  bool duplicated = false;
  /// For a column parallel layer: the caller has already gathered the input, for several layers at
  /// once; see whole_input() below.
  bool whole_input = false;
  /// For a row parallel layer: forward() returns this rank's part of the sum, and the caller sums.
  bool caller_sums = false;
  /// For quantized products: the input is the output of a norm, which nobody else reads; or
  /// attention keeps it for its own backward.
  bool after_norm = false;
  bool input_is_kept = false;
  bool at_mark = false;                   ///< for its parameters; see ParameterStore::mark_place
  std::optional<PackedRows> packed = {};  ///< rows of another weight; see PackedRows
  /// Which of the layers that may have an adapter it is; see lora_adapter.h.
  std::optional<estimator::AdapterTarget> target = {};
  bool adapter = false;                ///< it is a layer of an adapter; see parallel_adapter.h
  bool adapter_reads = false;          ///< its own adapter reads the input, too
  Parameter* shared_weight = nullptr;  ///< use this weight (tied output layer) and make none
  bool shared_copy = false;

  bool is_megatrons_own() const { return (output_layer && !quantized_output) || adapter; }
};

struct LinearCall;

/// Gathers the input of several column parallel layers once, as TorchTitan does (PrepareModuleInput
/// in torch/distributed/tensor/parallel/style.py). The backward sums the gradients of these layers
/// over the ranks.
at::Tensor whole_input(const ShardContext& context, const at::Tensor& input);

class ColumnParallelLinear {
 public:
  ColumnParallelLinear(ShardContext& context, ParameterStore& store, const LinearSpec& spec);
  /// [s or s/t, b, inputs] -> [s, b, outputs / t]. Adds the bias unless the caller does.
  at::Tensor forward(const at::Tensor& input) const;
  /// The bias that the caller adds, or an undefined tensor.
  at::Tensor bias() const;
  Parameter& weight() const;
  /// Adds the weight gradients that the plan defers: those of the first micro-batches of the
  /// iteration, whose inputs and output gradients were kept. Two buffers hold gathered inputs, so
  /// that one is gathered during the product with the other (drain_embedding_wgrad_compute in
  /// megatron/core/utils.py). Does nothing if none were deferred.
  void compute_deferred_gradients() const;

 private:
  at::Tensor compute(const at::Tensor& input) const;
  at::Tensor product(const at::Tensor& input, const at::Tensor& held) const;

  std::shared_ptr<const LinearCall> call_;
  Parameter* bias_ = nullptr;
  std::shared_ptr<const Adapter> adapter_;  ///< null without one
  bool holds_norm_;  ///< what the norm gave is kept, although the weight needs no input
  /// Gathers the input for the product and the adapter at once; else null.
  std::shared_ptr<Communicator> gathering_;
};

class RowParallelLinear {
 public:
  RowParallelLinear(ShardContext& context, ParameterStore& store, const LinearSpec& spec);
  /// [s, b, inputs / t] -> [s or s/t, b, outputs], without the bias. If the caller sums it is [s,
  /// b, outputs].
  at::Tensor forward(const at::Tensor& input) const;
  /// The bias that the caller adds, or an undefined tensor.
  at::Tensor bias() const;

 private:
  at::Tensor compute(const at::Tensor& input) const;
  at::Tensor product(const at::Tensor& input) const;

  std::shared_ptr<const LinearCall> call_;
  Parameter* bias_ = nullptr;
  std::shared_ptr<const Adapter> adapter_;  ///< null without one
};

}  // namespace models
