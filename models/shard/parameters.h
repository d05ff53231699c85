// The parameters of one shard: made in order, named by their path in the whole model, with all that
// communication, gradient buffers and the optimizer need to know of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "models/shard/observer.h"

namespace models {

enum class InitialValue { kNormal, kZeros, kOnes };

/// How the tensor ranks share a parameter: cut along `dim` (-1: every rank holds all of it).
/// `blocks` equal blocks stand one after the other along it (gate and up of a gated MLP): a rank
/// holds its part of each.
struct Sharding {
  int64_t dim = -1;
  int64_t blocks = 1;
};

/// `index` of the `size` ranks that cut the same tensors.
struct TensorPlace {
  int64_t size = 1;
  int64_t index = 0;
};

/// The part of `full` that the rank at `place` holds.
at::Tensor shard_of(const at::Tensor& full, const Sharding& sharding, const TensorPlace& place);

/// Rows of a matrix that other frameworks have as one parameter, so that all start at the same
/// weights: of each of `blocks` equal blocks, `count` of `parts` equal parts from the `first` one
/// on.
struct PackedRows {
  std::string name;  ///< of the other parameter
  int64_t blocks = 1;
  int64_t parts = 1;
  int64_t first = 0;
  int64_t count = 1;
};

/// How to make a parameter; `sharded_dim` and `blocks` are its Sharding.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> full_shape;
  int64_t sharded_dim = -1;  ///< -1: every tensor rank holds all of it
  int64_t blocks = 1;
  InitialValue initial_value = InitialValue::kNormal;
  bool sequence_partial = false;
  bool shared_copy = false;
  bool expert = false;   ///< see Parameter
  bool at_mark = false;  ///< see ParameterStore::mark_place
  std::optional<PackedRows> packed = {};
};

/// Which part of every parameter a data rank keeps: `index` of `ranks` equal ones, cut along dim 0
/// as torch.chunk cuts (the last ones may be smaller, or empty).
struct DataPart {
  int64_t ranks = 1;
  int64_t index = 0;
};

struct Parameter {
  std::string name;
  at::Tensor value;  ///< leaf that requires gradients; unbacked where only `part` lasts
  /// FSDP: this data rank's part, fp32 [elements of a whole part], zeros where it is smaller.
  at::Tensor part;
  DataPart data_part;
  at::Tensor main_gradient;  ///< view of the gradient buffer, same shape; set by GradientBuffer
  Sharding sharding;
  TensorPlace tensor_place;  ///< among those that share it
  bool tensor_sharded = false;
  /// Under sequence parallelism each tensor rank sees a part of the tokens, so the gradient is a
  /// partial sum and is all-reduced over the tensor group at the end of the iteration.
  bool sequence_partial = false;
  bool shared_copy = false;  ///< the last stage's copy of a tied embedding
  /// Of an expert: cut by the ranks of expert-tensor, and its gradient is summed over those of
  /// expert-data.
  bool expert = false;
  /// What autograd accumulates next only stands in for a gradient that a product has added already.
  bool gradient_is_stand_in = false;
  int64_t chunk = 0;  ///< of the stage, which holds it
  int64_t unit = 0;   ///< that FSDP gathers it with
  /// Gradient contributions of one micro-batch: 2 when a fused product and autograd both add.
  int contributions = 1;
  /// Called after each contribution has been added to main_gradient.
  std::function<void()> contribution_added;

  /// Elements [begin, end) of the flattened value that `part` holds.
  std::pair<int64_t, int64_t> owned_range() const;
  /// What lasts of it on this rank: the value, or its own rows of it.
  at::Tensor lasting() const;
};

/// Where weights come from. On the CPU they are cut from full tensors that depend on seed and name
/// alone, so that every layout of a plan trains the same model; elsewhere each rank draws its own.
struct ParameterSource {
  Observer& observer;
  at::TensorOptions options;  ///< device and type of the parameters
  int64_t seed = 0;
  TensorPlace tensor;
  TensorPlace expert_tensor;
  std::optional<DataPart> data_part;  ///< FSDP: parameters are made in parts
};

using ParameterList = std::vector<Parameter*>;

/// All of them, in order.
ParameterList list_of(std::deque<Parameter>& parameters);

class ParameterStore {
 public:
  explicit ParameterStore(ParameterSource source) : source_(std::move(source)) {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  /// Parameters that are added from here on are of this chunk.
  void begin_chunk(int64_t chunk) { chunk_ = chunk; }
  /// Parameters that are added from here on are of the next unit; its number.
  int64_t begin_unit() { return unit_ = units_++; }
  /// Or of this one again.
  void go_on_with_unit(int64_t unit) { unit_ = unit; }
  /// Parameters that are added later, and are said to be at the mark, stand here in lists.
  void mark_place() { mark_ = in_order_.size(); }
  /// The reference stays good for the life of the store.
  Parameter& add(const ParameterSpec& spec);

  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  /// As their framework registers them: all, and those of experts or all others.
  const ParameterList& in_order() const { return in_order_; }
  ParameterList of_experts(bool experts);
  estimator::ParametersRecord record() const;

  /// TransformerEngine gives autograd a tensor of the weight's shape and type where the product has
  /// added the gradient already. It makes one for each shape, never writes it and never frees it
  /// (get_dummy_wgrad in transformer_engine/pytorch/module/base.py): this makes and keeps the same.
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
  ParameterList in_order_;
  std::size_t mark_ = 0;
  int64_t chunk_ = 0;
  int64_t unit_ = 0;
  int64_t units_ = 0;
  std::map<std::vector<int64_t>, at::Tensor> gradient_stand_ins_;  // by shape
};

}  // namespace models
