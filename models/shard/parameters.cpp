#include "models/shard/parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/base/stable_hash.h"
#include "models/shard/quantized_parameter.h"
#include "models/shard/unbacked_tensor.h"

namespace models {
namespace {

constexpr double kInitialDeviation = 0.02;  // GPT-2, Megatron-LM --init-method-std

int64_t rows_of_part(int64_t rows, int64_t ranks) { return (rows + ranks - 1) / ranks; }

/// "layers.3.mlp.linear_fc1.weight" -> "layers.3.mlp.linear_fc1"
std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

at::Tensor normal(const std::string& name, const std::vector<int64_t>& shape, int64_t seed) {
  const auto generator =
      at::make_generator<at::CPUGeneratorImpl>(estimator::stable_hash(name, seed));
  return at::empty(shape, at::kFloat).normal_(0.0, kInitialDeviation, generator);
}

/// A matrix of `rows` x `columns`, cut from the one that it is a part of.
at::Tensor rows_of_packed(const PackedRows& packed, int64_t rows, int64_t columns, int64_t seed) {
  const at::Tensor all = normal(packed.name, {rows / packed.count * packed.parts, columns}, seed);
  return all.view({packed.blocks, packed.parts, -1, columns})
      .narrow(1, packed.first, packed.count)
      .reshape({rows, columns});
}

at::Tensor whole_normal(const ParameterSpec& spec, int64_t seed) {
  const std::vector<int64_t>& shape = spec.full_shape;
  if (spec.packed) return rows_of_packed(*spec.packed, shape[0], shape[1], seed);
  if (spec.stacked.empty()) return normal(spec.name, shape, seed);
  std::vector<at::Tensor> matrices;
  for (const PackedRows& matrix : spec.stacked) {
    matrices.push_back(rows_of_packed(matrix, shape[1], shape[2], seed));
  }
  return at::stack(matrices);
}

}  // namespace

at::Tensor shard_of(const at::Tensor& full, const Sharding& sharding, const TensorPlace& place) {
  if (sharding.dim < 0) return full;
  const int64_t dim = sharding.dim;
  const int64_t part = full.size(dim) / sharding.blocks / place.size;
  std::vector<int64_t> blocked = full.sizes().vec();
  blocked[dim] /= sharding.blocks;
  blocked.insert(blocked.begin() + dim, sharding.blocks);
  std::vector<int64_t> local = full.sizes().vec();
  local[dim] /= place.size;
  return full.view(blocked).narrow(dim + 1, place.index * part, part).reshape(local);
}

std::pair<int64_t, int64_t> Parameter::owned_range() const {
  const int64_t rows = data_part.is_flat ? value.numel() : value.size(0);
  const int64_t row = value.numel() / rows;
  const int64_t of_part = rows_of_part(rows, data_part.ranks);
  const int64_t begin = std::min(data_part.index * of_part, rows);
  return {begin * row, std::min(begin + of_part, rows) * row};
}

at::Tensor Parameter::lasting() const {
  if (quantized) return quantized->held.by_rows;
  if (!part.defined()) return value;
  const auto [begin, end] = owned_range();
  if (data_part.is_flat) return part.narrow(0, 0, end - begin);
  std::vector<int64_t> shape = value.sizes().vec();
  shape[0] = (end - begin) / (value.numel() / shape[0]);
  return part.narrow(0, 0, end - begin).view(shape);
}

void Parameter::move_to(at::Tensor place) {
  if (quantized) {
    place.view(at::kByte).copy_(lasting().view(at::kByte));
    quantized->held.by_rows = std::move(place);
  } else {
    place.copy_(lasting());
    value.set_data(place);
  }
}

ParameterList list_of(std::deque<Parameter>& parameters) {
  ParameterList list;
  for (Parameter& parameter : parameters) list.push_back(&parameter);
  return list;
}

ParameterList ParameterStore::trained() const {
  ParameterList list = in_order_;
  std::erase_if(list, [](const Parameter* parameter) { return !parameter->trained; });
  return list;
}

ParameterList ParameterStore::of_experts(bool experts) {
  ParameterList list = trained();
  std::erase_if(list, [&](const Parameter* parameter) { return parameter->expert != experts; });
  return list;
}

const TensorPlace& ParameterStore::place_of(const ParameterSpec& spec) const {
  if (!spec.stacked.empty()) return source_.experts;
  return spec.expert ? source_.expert_tensor : source_.tensor;
}

Parameter& ParameterStore::add(const ParameterSpec& spec) {
  std::vector<int64_t> shape = spec.full_shape;
  const TensorPlace& place = place_of(spec);
  const bool sharded = spec.sharded_dim >= 0 && place.size > 1;
  if (sharded) {
    if (shape[spec.sharded_dim] % (place.size * spec.blocks) != 0) {
      throw std::logic_error("parameter " + spec.name + " does not divide by the tensor ranks");
    }
    shape[spec.sharded_dim] /= place.size;
  }
  Parameter& parameter = parameters_.emplace_back();
  in_order_.insert(
      spec.at_mark ? in_order_.begin() + static_cast<std::ptrdiff_t>(mark_++) : in_order_.end(),
      &parameter);
  parameter.name = spec.name;
  if (source_.data_part)
    make_part(parameter, spec, shape);
  else
    make_whole(parameter, spec, shape);
  parameter.trained = !source_.adapter_options || spec.adapter;
  parameter.value.requires_grad_(parameter.trained);
  source_.observer.memory_lasts(
      parameter.lasting(),
      {estimator::MemoryCategory::kParameter, module_of(spec.name), spec.name});
  parameter.sharding = {.dim = spec.sharded_dim, .blocks = spec.blocks};
  parameter.tensor_place = place;
  parameter.tensor_sharded = sharded;
  parameter.sequence_partial = spec.sequence_partial;
  parameter.shared_copy = spec.shared_copy;
  parameter.expert = spec.expert;
  parameter.of_vocabulary = spec.of_vocabulary;
  parameter.group_rows = spec.group_rows;
  parameter.chunk = chunk_;
  parameter.unit = unit_;
  return parameter;
}

Parameter& ParameterStore::add_leaf(const Parameter& parameter) {
  Parameter& leaf = more_leaves_.emplace_back(parameter);
  leaf.value = unbacked_tensor(parameter.value.sizes(), source_.options);
  leaf.value.requires_grad_(parameter.trained);
  leaf.leaf_of = &parameter;
  leaf.unit = unit_;
  return leaf;
}

void ParameterStore::make_whole(Parameter& parameter,
                                const ParameterSpec& spec,
                                const std::vector<int64_t>& shape) {
  const bool is_adapter = spec.adapter && source_.adapter_options;
  parameter.value =
      initial_value(spec, shape, is_adapter ? *source_.adapter_options : source_.options);
}

void ParameterStore::make_part(Parameter& parameter,
                               const ParameterSpec& spec,
                               const std::vector<int64_t>& shape) {
  const c10::NoGradGuard no_grad;
  parameter.data_part = spec.expert ? *source_.expert_data_part : *source_.data_part;
  const bool is_flat = parameter.data_part.is_flat;
  const at::TensorOptions options =
      is_flat ? source_.options : source_.options.dtype(source_.part_type);
  parameter.value = unbacked_tensor(shape, source_.options);
  std::vector<int64_t> part_shape = is_flat ? std::vector{parameter.value.numel()} : shape;
  part_shape[0] = rows_of_part(part_shape[0], parameter.data_part.ranks);
  if (options.device() != at::kCPU) {
    parameter.part = initial_value(spec, part_shape, options).view(-1);
    return;
  }
  parameter.part = at::zeros(part_shape, options).view(-1);
  const auto [begin, end] = parameter.owned_range();
  const at::Tensor whole = initial_value(spec, shape, options).view(-1);
  parameter.part.narrow(0, 0, end - begin).copy_(whole.narrow(0, begin, end - begin));
}

at::Tensor ParameterStore::initial_value(const ParameterSpec& spec,
                                         const std::vector<int64_t>& shape,
                                         const at::TensorOptions& options) const {
  switch (spec.initial_value) {
    case InitialValue::kZeros:
      return at::zeros(shape, options);
    case InitialValue::kOnes:
      return at::ones(shape, options);
    case InitialValue::kNormal:
      break;
  }
  if (options.device() != at::kCPU) {
    return at::empty(shape, options).normal_(0.0, kInitialDeviation);
  }
  const at::Tensor full = whole_normal(spec, source_.seed);
  const Sharding sharding{.dim = spec.sharded_dim, .blocks = spec.blocks};
  const at::Tensor part = shard_of(full, sharding, place_of(spec));
  return part.contiguous().to(options.dtype().toScalarType(), false, /*copy=*/true);
}

const at::Tensor& ParameterStore::gradient_stand_in(const at::Tensor& weight) {
  at::Tensor& stand_in = gradient_stand_ins_[weight.sizes().vec()];
  if (stand_in.defined()) return stand_in;
  stand_in = at::empty(weight.sizes(), source_.options);
  source_.observer.memory_lasts(stand_in,
                                {estimator::MemoryCategory::kGradient, "gradient_stand_in", ""});
  return stand_in;
}

int64_t ParameterStore::gradient_stand_in_bytes() const {
  int64_t bytes = 0;
  for (const auto& [shape, tensor] : gradient_stand_ins_) {
    bytes += tensor.numel() * tensor.element_size();
  }
  return bytes;
}

/// Of the parameter, in what lasts of it.
static int64_t elements_of(const Parameter& parameter, const at::Tensor& lasting) {
  const auto& quantized = parameter.quantized;
  return lasting.numel() * (quantized ? quantized->products.elements_of_byte() : 1);
}

estimator::ParametersRecord ParameterStore::record() const {
  estimator::ParametersRecord record;
  for (const Parameter& parameter : parameters_) {
    const at::Tensor lasting = parameter.lasting();
    const int64_t bytes = lasting.numel() * lasting.element_size();
    record.count += elements_of(parameter, lasting);
    record.bytes += bytes;
    record.tensors.push_back({.name = parameter.name,
                              .shape = lasting.sizes().vec(),
                              .dtype = c10::toString(lasting.scalar_type()),
                              .bytes = bytes,
                              .tensor_sharded = parameter.tensor_sharded,
                              .shared_copy = parameter.shared_copy});
  }
  return record;
}

}  // namespace models
