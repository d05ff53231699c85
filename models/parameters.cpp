#include "models/parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <stdexcept>

namespace models {
namespace {

constexpr double kInitialDeviation = 0.02;  // GPT-2, Megatron-LM --init-method-std

/// FNV-1a: the same on every machine, unlike std::hash.
uint64_t hash(const std::string& text, uint64_t seed) {
  uint64_t value = 14695981039346656037ull ^ seed;
  for (const unsigned char letter : text) value = (value ^ letter) * 1099511628211ull;
  return value;
}

/// "layers.3.mlp.first.weight" -> "layers.3.mlp.first"
std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

}  // namespace

at::Tensor shard_of(const at::Tensor& full, const Sharding& sharding, int64_t size, int64_t index) {
  if (sharding.dim < 0) return full;
  const int64_t dim = sharding.dim;
  const int64_t part = full.size(dim) / sharding.blocks / size;
  std::vector<int64_t> blocked = full.sizes().vec();
  blocked[dim] /= sharding.blocks;
  blocked.insert(blocked.begin() + dim, sharding.blocks);
  std::vector<int64_t> local = full.sizes().vec();
  local[dim] /= size;
  return full.view(blocked).narrow(dim + 1, index * part, part).reshape(local);
}

Parameter& ParameterStore::add(const ParameterSpec& spec) {
  std::vector<int64_t> shape = spec.full_shape;
  const bool sharded = spec.sharded_dim >= 0 && source_.tensor_size > 1;
  if (sharded) {
    if (shape[spec.sharded_dim] % (source_.tensor_size * spec.blocks) != 0) {
      throw std::logic_error("parameter " + spec.name + " does not divide by the tensor ranks");
    }
    shape[spec.sharded_dim] /= source_.tensor_size;
  }
  at::Tensor value = initial_value(spec, shape);
  value.requires_grad_(true);
  source_.observer.memory_lasts(
      value, {estimator::MemoryCategory::kParameter, module_of(spec.name), spec.name});
  Parameter& parameter = parameters_.emplace_back();
  parameter.name = spec.name;
  parameter.value = std::move(value);
  parameter.sharding = {.dim = spec.sharded_dim, .blocks = spec.blocks};
  parameter.tensor_sharded = sharded;
  parameter.sequence_partial = spec.sequence_partial;
  parameter.shared_copy = spec.shared_copy;
  parameter.chunk = chunk_;
  return parameter;
}

at::Tensor ParameterStore::initial_value(const ParameterSpec& spec,
                                         const std::vector<int64_t>& shape) const {
  switch (spec.initial_value) {
    case InitialValue::kZeros:
      return at::zeros(shape, source_.options);
    case InitialValue::kOnes:
      return at::ones(shape, source_.options);
    case InitialValue::kNormal:
      break;
  }
  if (source_.options.device() != at::kCPU) {
    return at::empty(shape, source_.options).normal_(0.0, kInitialDeviation);
  }
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(hash(spec.name, source_.seed));
  const at::Tensor full =
      at::empty(spec.full_shape, at::kFloat).normal_(0.0, kInitialDeviation, generator);
  const Sharding sharding{.dim = spec.sharded_dim, .blocks = spec.blocks};
  const at::Tensor part = shard_of(full, sharding, source_.tensor_size, source_.tensor_index);
  return part.contiguous().to(source_.options.dtype().toScalarType(), false, /*copy=*/true);
}

void ParameterStore::keep_gradient_stand_in(const at::Tensor& weight) {
  at::Tensor& stand_in = gradient_stand_ins_[weight.sizes().vec()];
  if (stand_in.defined()) return;
  stand_in = at::empty(weight.sizes(), source_.options);
  source_.observer.memory_lasts(stand_in,
                                {estimator::MemoryCategory::kGradient, "gradient_stand_in", ""});
}

int64_t ParameterStore::gradient_stand_in_bytes() const {
  int64_t bytes = 0;
  for (const auto& [shape, tensor] : gradient_stand_ins_) {
    bytes += tensor.numel() * tensor.element_size();
  }
  return bytes;
}

estimator::ParametersRecord ParameterStore::record() const {
  estimator::ParametersRecord record;
  for (const Parameter& parameter : parameters_) {
    const at::Tensor& value = parameter.value;
    const int64_t bytes = value.numel() * value.element_size();
    record.count += value.numel();
    record.bytes += bytes;
    record.tensors.push_back({.name = parameter.name,
                              .shape = value.sizes().vec(),
                              .dtype = c10::toString(value.scalar_type()),
                              .bytes = bytes,
                              .tensor_sharded = parameter.tensor_sharded,
                              .shared_copy = parameter.shared_copy});
  }
  return record;
}

}  // namespace models
