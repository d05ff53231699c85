// The parameters of one shard, in the order in which they are made. Each is named by its path in
// the whole model and has all that communication, gradient buffers and the optimizer need to know.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "models/shard/observer.h"

namespace models {

enum class InitialValue { kNormal, kZeros, kOnes };

/// How a parameter is split over the tensor ranks: along `dim`, or not at all if `dim` is -1. Along
/// this dim the parameter consists of `blocks` equal blocks (such as gate and up of a gated MLP),
/// and a rank holds its part of each block.
struct Sharding {
  int64_t dim = -1;
  int64_t blocks = 1;
};

/// The place of a rank among the `size` ranks that split the same tensors.
struct TensorPlace {
  int64_t size = 1;
  int64_t index = 0;
};

/// The part of `full` that the rank at `place` holds.
at::Tensor shard_of(const at::Tensor& full, const Sharding& sharding, const TensorPlace& place);

/// Some rows of a matrix that is one parameter in other frameworks. The initial weights are taken
/// from that matrix, so that all frameworks start with the same weights. The matrix has `blocks`
/// equal blocks, each with `parts` equal parts; the rows are `count` parts of each block, from part
/// `first` on.
struct PackedRows {
  std::string name;  ///< name of the parameter in the other frameworks
  int64_t blocks = 1;
  int64_t parts = 1;
  int64_t first = 0;
  int64_t count = 1;
};

/// How to make a parameter. `sharded_dim` and `blocks` are its Sharding.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> full_shape;
  int64_t sharded_dim = -1;  ///< -1: every tensor rank holds the whole parameter
  int64_t blocks = 1;
  InitialValue initial_value = InitialValue::kNormal;
  bool sequence_partial = false;
  bool shared_copy = false;
  bool adapter = false;                  ///< of an adapter (lora_adapter.h)
  bool expert = false;                   ///< see Parameter
  bool of_vocabulary = false;            ///< see Parameter
  std::vector<int64_t> group_rows = {};  ///< see Parameter
  bool at_mark = false;                  ///< see ParameterStore::mark_place
  std::optional<PackedRows> packed = {};
  /// Of a tensor [n, rows, columns]: the n matrices that it consists of, which are parameters or
  /// rows of parameters in other frameworks.
  std::vector<PackedRows> stacked = {};
};

/// The part of every parameter that a data rank keeps: number `index` of `ranks` parts, cut along
/// dim 0 as torch.chunk does (the last parts may be smaller, or empty), in fp32 (FSDP); or the
/// same, cut along the flattened elements, in the type of the parameter (DeepSpeed).
struct DataPart {
  int64_t ranks = 1;
  int64_t index = 0;
  bool is_flat = false;
};

struct QuantizedParameter;

/// FSDP: a parameter of two units, each of which gathers it by itself, has a leaf in each of them,
/// and one part (see ParameterStore::add_leaf).
struct Parameter {
  std::string name;
  /// Leaf, which requires gradients if it is trained; unbacked if only `part` or `quantized`
  /// lasts.
  at::Tensor value;
  bool trained = true;  ///< false: its values never change (the weights beside adapters)
  /// FSDP, ZeRO stage 3: this data rank's part, padded with zeros to the size of the largest part.
  /// In fp32, but for pure 16 bits and ZeRO.
  at::Tensor part;
  DataPart data_part;
  /// Of another leaf of a parameter: the one that stands for it. Else null.
  const Parameter* leaf_of = nullptr;
  /// Its values, if they are quantized alone (quantized_parameter.h); else null.
  std::shared_ptr<QuantizedParameter> quantized;
  at::Tensor main_gradient;  ///< view of the gradient buffer, same shape; set by GradientBuffer
  Sharding sharding;
  TensorPlace tensor_place;  ///< of this rank among those that split it
  bool tensor_sharded = false;
  /// Under sequence parallelism each tensor rank sees a part of the tokens, so the gradient is a
  /// partial sum and is all-reduced over the tensor group at the end of the iteration.
  bool sequence_partial = false;
  bool shared_copy = false;    ///< the last stage's copy of an embedding
  bool of_vocabulary = false;  ///< the embedding of words, or the output layer
  /// If its rows are groups of several matrices: the rows of each of them in one group.
  std::vector<int64_t> group_rows;
  /// Belongs to an expert: it is split over the expert-tensor ranks, and its gradient is summed
  /// over the expert-data ranks.
  bool expert = false;
  /// The next gradient from autograd is only a stand-in; a product has already added the real one.
  bool gradient_is_stand_in = false;
  int64_t chunk = 0;  ///< model chunk of the stage that has it
  int64_t unit = 0;   ///< FSDP unit with which it is gathered
  /// Number of times that one micro-batch adds to its gradient: more than 1 if several fused
  /// products do, or fused products and autograd.
  int contributions = 1;
  /// Autograd has a gradient for it beside those that fused products add (a tied embedding).
  bool autograd_adds_too = false;
  /// Called after each contribution has been added to main_gradient.
  std::function<void()> contribution_added;

  /// Elements [begin, end) of the flattened value that `part` holds.
  std::pair<int64_t, int64_t> owned_range() const;
  /// The tensor that lasts on this rank: the value, or this rank's own rows of it, or its
  /// quantized values.
  at::Tensor lasting() const;
  /// Moves a value that lasts as a whole to `place`, which has its shape and type.
  void move_to(at::Tensor place);
};

/// Where initial weights come from. On the CPU they are cut from full tensors that depend only on
/// the seed and the name, so that every layout of a plan trains the same model. On other devices
/// each rank draws its own.
struct ParameterSource {
  Observer& observer;
  at::TensorOptions options;  ///< device and type of the parameters
  /// The same of adapters; if it is set, these alone are trained.
  std::optional<at::TensorOptions> adapter_options;
  int64_t seed = 0;
  TensorPlace tensor;
  TensorPlace expert_tensor;
  TensorPlace experts;                       ///< among the ranks that divide stacked experts
  std::optional<DataPart> data_part;         ///< if set, only this part of each parameter is made
  std::optional<DataPart> expert_data_part;  ///< the same, of the parameters of experts
  c10::ScalarType part_type = c10::ScalarType::Float;
};

using ParameterList = std::vector<Parameter*>;

/// Whether weight decay is for it, in transformers' Trainer: not for norms and biases
/// (get_decay_parameter_names in trainer.py).
inline bool decays(const Parameter* parameter) { return parameter->value.dim() > 1; }

/// Pointers to all parameters, in order.
ParameterList list_of(std::deque<Parameter>& parameters);

class ParameterStore {
 public:
  explicit ParameterStore(const ParameterSource& source) : source_(source) {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  /// Parameters that are added from now on belong to this chunk.
  void begin_chunk(int64_t chunk) { chunk_ = chunk; }
  /// Begins the next FSDP unit and returns its number. Parameters that are added from now on belong
  /// to it.
  int64_t begin_unit() { return unit_ = units_++; }
  int64_t next_unit() const { return units_; }
  int64_t chunk() const { return chunk_; }
  int64_t unit() const { return unit_; }
  /// Parameters that are added from now on belong to this earlier unit again.
  void go_on_with_unit(int64_t unit) { unit_ = unit; }
  /// Marks the current place in the order. Later parameters with `at_mark` are inserted here.
  void mark_place() { mark_ = in_order_.size(); }
  /// The reference stays valid as long as the store lives.
  Parameter& add(const ParameterSpec& spec);
  /// Another leaf of a parameter that lasts as a part, for the current unit.
  Parameter& add_leaf(const Parameter& parameter);
  std::deque<Parameter>& more_leaves() { return more_leaves_; }

  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  /// All parameters, in the order in which the framework registers them.
  const ParameterList& in_order() const { return in_order_; }
  /// The same, of those that are trained; and of these those of experts, or only the others.
  ParameterList trained() const;
  ParameterList of_experts(bool experts);
  estimator::ParametersRecord record() const;

  /// Counts the iterations: in each of them the weights have other values.
  void begin_iteration() { ++iteration_; }
  int64_t iteration() const { return iteration_; }

  /// If a product has already added the gradient, TransformerEngine gives autograd a stand-in
  /// tensor of the weight's shape and type. It makes one for each shape, never writes to it and
  /// never frees it (get_dummy_wgrad in transformer_engine/pytorch/module/base.py). This makes and
  /// keeps the same.
  const at::Tensor& gradient_stand_in(const at::Tensor& weight);
  int64_t gradient_stand_in_bytes() const;

 private:
  const TensorPlace& place_of(const ParameterSpec& spec) const;
  at::Tensor initial_value(const ParameterSpec& spec,
                           const std::vector<int64_t>& shape,
                           const at::TensorOptions& options) const;
  void make_whole(Parameter& parameter,
                  const ParameterSpec& spec,
                  const std::vector<int64_t>& shape);
  void make_part(Parameter& parameter,
                 const ParameterSpec& spec,
                 const std::vector<int64_t>& shape);

  ParameterSource source_;
  std::deque<Parameter> parameters_;
  std::deque<Parameter> more_leaves_;
  ParameterList in_order_;
  std::size_t mark_ = 0;
  int64_t chunk_ = 0;
  int64_t unit_ = 0;
  int64_t units_ = 0;
  int64_t iteration_ = 0;
  std::map<std::vector<int64_t>, at::Tensor> gradient_stand_ins_;  // by shape
};

}  // namespace models
