// FSDP2's units on a stage of torch.distributed.pipelining; see FullyShardedOptions::in_pipeline.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "models/data_parallel/fully_sharded.h"

namespace models {

using estimator::MemoryCategory;

namespace {

at::Tensor whole_memory(const at::Tensor& tensor) {
  return tensor.as_strided({elements_of_memory(tensor)}, {1}, 0);
}

/// Adds a gradient to a sum in `type`.
void add_to_sum(at::Tensor& sum, const at::Tensor& gradient, c10::ScalarType type) {
  if (sum.defined()) {
    sum.add_(gradient);
  } else {
    sum = gradient.to(type);
  }
}

/// The same. Over tensor ranks the gradient of an embedding is one of the whole vocabulary, and so
/// is the sum, until DTensor takes this rank's rows of it (_get_grad_inner_tensor()).
void add_whole_to_sum(at::Tensor& sum, const at::Tensor& gradient, c10::ScalarType type) {
  at::Tensor whole = sum.defined() ? whole_memory(sum) : at::Tensor();
  add_to_sum(whole, whole_memory(gradient), type);
  if (sum.defined()) return;
  sum = whole.as_strided(gradient.sizes(), gradient.strides(), gradient.storage_offset());
}

}  // namespace

/// accumulate_unsharded_grad_if_needed() and to_accumulated_grad_if_needed() in _fsdp_param.py.
void FullySharded::sum_whole_gradients(Unit& unit) {
  unit.sums.resize(unit.trained.size());
  for (std::size_t i = 0; i < unit.trained.size(); ++i) {
    const Parameter& parameter = *unit.trained[i];
    at::Tensor& sum = unit.sums[i];
    const at::Tensor gradient = std::exchange(parameter.value.mutable_grad(), at::Tensor());
    if (!gradient.defined()) continue;
    const bool is_first = !sum.defined();
    const auto add = parameter.of_vocabulary ? add_whole_to_sum : add_to_sum;
    add(sum, gradient, options_.reduce_type);
    if (is_first)
      observer().memory_lasts(sum, {MemoryCategory::kGradient, kModule, parameter.name});
  }
}

void FullySharded::finish_chunk(int64_t chunk) {
  if (chunk != options_.chunk || !options_.in_pipeline) return;
  const at::NoGradGuard no_grad;
  const ModuleScope module(observer(), kModule);
  for (Unit& unit : units_) {
    std::vector<at::Tensor> gradients = take_gradients(unit);
    free_parameters(unit);
    reduce(unit, std::move(gradients));
    unit.positions.clear();
  }
  forward_order_.clear();
  finish_reductions();
}

/// UNSHARD and RESHARD in schedules.py. unshard(async_op=True) copies on the stream of the
/// computation.
void FullySharded::start_gathering_chunk(int64_t chunk) {
  if (chunk != options_.chunk) return;
  for (Unit& unit : units_) start_gathering_from_current(unit);
  is_gathered_ahead_ = true;
}

void FullySharded::free_chunk(int64_t chunk) {
  if (chunk != options_.chunk) return;
  for (Unit& unit : units_) free_parameters(unit);
}

void FullySharded::finish_gathering_chunk() {
  if (!std::exchange(is_gathered_ahead_, false)) return;
  for (Unit& unit : units_) finish_gathering(unit, /*in_forward=*/false);
}

}  // namespace models
