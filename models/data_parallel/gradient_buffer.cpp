#include "models/data_parallel/gradient_buffer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "estimator/base/units.h"
#include "models/data_parallel/finite_check.h"
#include "models/shard/quantized_parameter.h"

namespace models {

using estimator::MemoryCategory;

namespace {

/// Moves what autograd accumulated into the main gradient and drops it.
class AddToMainGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit AddToMainGradient(Parameter& parameter) : parameter_(parameter) {}
  void operator()(const torch::autograd::Variable& value) override {
    if (!value.grad().defined()) return;  // a fused product has added it already
    const c10::NoGradGuard no_grad;
    const bool stand_in = std::exchange(parameter_.gradient_is_stand_in, false);
    if (!stand_in) parameter_.main_gradient.add_(value.grad());
    value.mutable_grad().reset();
    if (!stand_in) parameter_.contribution_added();
  }

 private:
  Parameter& parameter_;
};

/// Tells that autograd's own gradient is there.
class CountContribution : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit CountContribution(Parameter& parameter) : parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override { parameter_.contribution_added(); }

 private:
  Parameter& parameter_;
};

std::unique_ptr<torch::autograd::PostAccumulateGradHook> hook_for(OwnGradients own_gradients,
                                                                  Parameter& parameter) {
  if (own_gradients == OwnGradients::kAdded) return std::make_unique<AddToMainGradient>(parameter);
  if (own_gradients == OwnGradients::kUntilZeroed) {
    return std::make_unique<CountContribution>(parameter);
  }
  return nullptr;
}

std::vector<Bucket> lay_out(const ParameterList& parameters, const GradientBufferOptions& options) {
  if (options.shape.whole_matrices) return lay_out_matrices(parameters, options.shape);
  const bool is_torchs = options.reducer && options.reducer->is_torchs();
  return is_torchs ? first_reducer_buckets(parameters, *options.reducer)
                   : lay_out_buckets(parameters, options.shape);
}

bool has_unit(const Bucket& bucket, int64_t unit) {
  return std::any_of(bucket.slots.begin(), bucket.slots.end(), [unit](const ParameterSlot& slot) {
    return slot.parameter->unit == unit;
  });
}

}  // namespace

GradientBuffer::GradientBuffer(const ParameterList& parameters, GradientBufferOptions options)
    : options_(std::move(options)) {
  set_buckets(lay_out(parameters, options_));
  if (buckets_.empty()) return;
  const c10::NoGradGuard no_grad;
  const Parameter& first = *parameters.front();
  shares_memory_ = first.quantized && first.quantized->products.gathers_before_quantizing();
  const bool is_bytes = first.quantized && !shares_memory_;
  places_ = is_bytes ? packed_buckets(
                           buckets_, options_.shape, first.quantized->products.elements_of_byte())
                     : buckets_;
  const at::TensorOptions parameter_options =
      (is_bytes ? first.value.options().dtype(at::kByte) : first.value.options())
          .requires_grad(false);
  {
    std::optional<SideStream::Scope> beside;
    if (options_.stream) beside.emplace(*options_.stream);
    make_flat(parameter_options);
  }
  if (options_.stream) options_.stream->join();
  if (options_.instances && options_.overlap) {
    reductions_.emplace(gradients_.device(), &options_.observer);
  }
  owned_parameters_ =
      make_owned_parameters(options_.whole_owners, parameters, options_.data_group, observer());
  if (options_.reducer && options_.data_group) {
    reducer_.emplace(buckets_, *options_.reducer, *options_.data_group, observer());
    records_arrivals_ = options_.reducer->rebuilds();
    if (options_.reducer->is_torchs()) whole_ = parameters;
  }
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    for (std::size_t i = 0; i < buckets_[index].slots.size(); ++i) {
      const ParameterSlot& slot = buckets_[index].slots[i];
      Parameter& parameter = *slot.parameter;
      if (has_flat_gradients()) {
        parameter.main_gradient =
            slice(gradients_, slot.begin, slot.end).view(parameter.value.sizes());
      }
      if (sharded()) move_in(places_[index].slots[i]);
      if (auto hook = hook_for(options_.own_gradients, parameter)) {
        torch::autograd::impl::set_post_acc_grad_hooks(parameter.value, std::move(hook));
      }
    }
  }
}

/// Makes the place in the flat parameters that of the parameter.
void GradientBuffer::move_in(const ParameterSlot& slot) {
  Parameter& parameter = *slot.parameter;
  const at::Tensor place = slice(parameters_, slot.begin, slot.end);
  if (shares_memory_) {
    return parameter.quantized->products.read(parameter.quantized->held,
                                              place.view(parameter.value.sizes()));
  }
  const at::Tensor lasting = parameter.lasting();
  parameter.move_to(place.view(lasting.sizes()).view(lasting.scalar_type()));
}

void GradientBuffer::make_flat(const at::TensorOptions& parameter_options) {
  const int64_t elements = buckets_.back().end;
  if (keeps_parameters()) {
    parameters_ = at::zeros({places_.back().end}, parameter_options);
    observer().memory_lasts(parameters_, {MemoryCategory::kParameter, "parameter_buffer", ""});
  }
  if (has_flat_gradients()) {
    gradients_ = at::zeros({elements}, parameter_options.dtype(options_.type));
    observer().memory_lasts(gradients_, {MemoryCategory::kGradient, "gradient_buffer", ""});
  }
  if (shares_memory_) {
    const int64_t times =
        gradients_.element_size() / static_cast<int64_t>(parameter_options.dtype().itemsize());
    parameters_ = slice(gradients_, 0, (elements + times - 1) / times)
                      .view(c10::typeMetaToScalarType(parameter_options.dtype()));
  }
}

DirectionScope GradientBuffer::once_in(estimator::Direction direction) const {
  return {options_.observer, direction, kNoMicroBatch, buckets_.front().chunk};
}

at::Tensor GradientBuffer::slice(const at::Tensor& flat, int64_t begin, int64_t end) const {
  return flat.narrow(0, begin, end - begin);
}

void GradientBuffer::begin_iteration() {
  step_gradients_.clear();
  if (gradients_.defined()) zero_gradients();
  if (!has_flat_gradients()) drop_own_gradients();
  rebuild_buckets();
  missing_contributions_.assign(buckets_.size(), 0);
  started_.assign(buckets_.size(), false);
  next_ = 0;
}

void GradientBuffer::start_last_micro_batch(int64_t chunk) {
  if (!options_.overlap) return;
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    if (buckets_[index].chunk != chunk) continue;
    for (const ParameterSlot& slot : buckets_[index].slots) {
      missing_contributions_[index] += slot.parameter->contributions;
    }
  }
}

void GradientBuffer::reduce(std::size_t index) {
  started_[index] = true;
  // An overlapped reduction starts inside the last backward but happens once for an iteration.
  const Bucket& bucket = buckets_[index];
  const DirectionScope direction = once_in(estimator::Direction::kReduceGradients);
  const ModuleScope module(options_.observer, "gradients");
  if (!has_flat_gradients()) {
    if (reducer_) pending_.push_back(reducer_->reduce(buckets_, index, replicas()));
    return;
  }
  at::Tensor whole = slice(gradients_, bucket.begin, bucket.end);
  // check_grads in megatron/core/distributed/param_and_grad_buffer.py
  if (options_.check_finite) check_finite(at::norm(whole), "gradients");
  if (replicas() > 1) whole.mul_(1.0 / static_cast<double>(replicas()));
  if (options_.instances) return reduce_over_instances(bucket);
  if (!options_.data_group) return;
  sum_over_ranks(bucket, whole);
}

void GradientBuffer::sum_over_ranks(const Bucket& bucket, const at::Tensor& whole) {
  Communicator& group = *options_.data_group;
  if (!sharded()) {
    if (!options_.overlap) return group.all_reduce(whole);
    return pending_.push_back(group.start_all_reduce(whole));
  }
  const auto [begin, end] = shard_range(bucket);
  const at::Tensor shard = slice(gradients_, begin, end);
  if (!options_.overlap) return group.reduce_scatter(shard, whole);
  pending_.push_back(group.start_reduce_scatter(shard, whole));
}

/// start_grad_sync in megatron/core/distributed/param_and_grad_buffer.py: both calls are
/// synchronous, on a stream of their own if they overlap with the backward.
void GradientBuffer::reduce_over_instances(const Bucket& bucket) {
  const auto [begin, end] = shard_range(bucket);
  const at::Tensor shard = slice(gradients_, begin, end);
  std::optional<SideStream::Scope> beside;
  if (options_.overlap) {
    reductions_->wait_for_current();
    beside.emplace(*reductions_);
  }
  if (options_.data_group) {
    options_.data_group->reduce_scatter(shard, slice(gradients_, bucket.begin, bucket.end));
  }
  options_.instances->all_reduce(shard);
}

void GradientBuffer::reduce_the_rest() {
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    if (!started_[index]) reduce(index);
  }
}

void GradientBuffer::start_reducing_chunk(int64_t chunk) {
  if (!buckets_.empty() && buckets_.front().chunk == chunk) start_reduction();
}

void GradientBuffer::start_reduction() {
  if (!options_.overlap || options_.own_gradients != OwnGradients::kAdded) return;
  const DirectionScope direction = once_in(estimator::Direction::kReduceGradients);
  reduce_the_rest();
}

void GradientBuffer::finish_reduction() {
  if (buckets_.empty()) return;
  const DirectionScope direction = once_in(estimator::Direction::kReduceGradients);
  if (options_.own_gradients == OwnGradients::kUntilStep) return reduce_own_gradients();
  if (options_.own_gradients == OwnGradients::kUntilNextBackward) return reduce_in_parameter_type();
  reduce_the_rest();
  if (reducer_) pending_.push_back(reducer_->reduce_used_map());
  for (PendingCall& call : pending_) call.wait();
  pending_.clear();
  if (reductions_) reductions_->join();
  finish_reducer();
}

void GradientBuffer::gather_parameters() {
  if (owned_parameters_) return owned_parameters_->hand_out();
  if (!sharded()) return;
  if (!options_.data_group) {
    for (const Bucket& bucket : buckets_) parameters_arrived(bucket);
    return;
  }
  for (std::size_t index = 0; index < buckets_.size(); ++index) gathers_[index] = std::nullopt;
  if (!options_.overlap_gather) finish_gathers();
}

/// What was not gathered yet is zeroed after it has arrived.
void GradientBuffer::zero_gradients() {
  const bool holds_parameters = shares_memory_ && !gathers_.empty();
  const int64_t first =
      holds_parameters ? parameters_.nbytes() / gradients_.element_size() : int64_t{0};
  slice(gradients_, first, gradients_.numel()).zero_();
}

void GradientBuffer::finish_gathers() {
  for (const auto& [index, call] : gathers_) {
    if (!call) start_gather(index);
  }
  while (!gathers_.empty()) finish_gather(gathers_.begin()->first);
}

void GradientBuffer::start_gather(std::size_t index) {
  const Bucket& bucket = places_[index];
  const DirectionScope direction = once_in(estimator::Direction::kOptimizerStep);
  const auto [begin, end] = shard_range(bucket);
  gathers_.at(index) = options_.data_group->start_all_gather(
      slice(parameters_, bucket.begin, bucket.end), slice(parameters_, begin, end));
}

void GradientBuffer::finish_gather(std::size_t index) {
  const DirectionScope direction = once_in(estimator::Direction::kOptimizerStep);
  gathers_.at(index)->wait();
  gathers_.erase(index);
  parameters_arrived(buckets_[index]);
}

/// post_all_gather_processing in transformer_engine/pytorch/tensor/utils.py, or _post_param_sync in
/// megatron/core/distributed/param_and_grad_buffer.py.
void GradientBuffer::parameters_arrived(const Bucket& bucket) {
  for (const ParameterSlot& slot : bucket.slots) {
    const auto& quantized = slot.parameter->quantized;
    if (!quantized) continue;
    if (shares_memory_) {
      const at::Tensor values = slice(parameters_, slot.begin, slot.end);
      quantized->products.quantize_into(quantized->held,
                                        values.view(slot.parameter->value.sizes()));
    } else {
      quantized->products.transpose(quantized->held);
    }
  }
  if (shares_memory_) slice(parameters_, bucket.begin, bucket.end).zero_();
}

void GradientBuffer::start_gathers(int64_t chunk, bool all) {
  if (gathers_.empty() || buckets_.front().chunk != chunk) return;
  // Parameters lie in reverse order: the last bucket is needed first.
  for (const auto& [index, call] : gathers_) {
    if (!call && (all || index == gathers_.rbegin()->first)) start_gather(index);
  }
}

/// Of a unit that runs twice, as embedding and as head, each time the buckets that lie together.
void GradientBuffer::before_unit(int64_t unit) {
  const c10::NoGradGuard no_grad;
  bool has_found = false;
  for (std::size_t index = buckets_.size(); index-- > 0;) {
    const auto found = gathers_.find(index);
    if (found == gathers_.end()) continue;
    if (!has_unit(buckets_[index], unit)) {
      if (has_found) return;
      continue;
    }
    has_found = true;
    if (!found->second) start_gather(index);
    finish_gather(index);
    const auto next = gathers_.find(index - 1);
    if (next != gathers_.end() && !next->second) start_gather(index - 1);
  }
}

std::pair<int64_t, int64_t> GradientBuffer::shard_range(const Bucket& bucket) const {
  if (!sharded()) return {bucket.begin, bucket.end};
  const int64_t part = (bucket.end - bucket.begin) / options_.shape.data_ranks;
  const int64_t index = options_.data_group ? options_.data_group->index() : 0;
  return {bucket.begin + index * part, bucket.begin + (index + 1) * part};
}

std::pair<int64_t, int64_t> GradientBuffer::owned_range(const Bucket& bucket,
                                                        const ParameterSlot& slot) const {
  if (owned_parameters_ && !owned_parameters_->is_mine(*slot.parameter)) {
    return {slot.begin, slot.begin};
  }
  const auto [shard_begin, shard_end] = shard_range(bucket);
  const int64_t begin = std::clamp(shard_begin, slot.begin, slot.end);
  return {begin, std::clamp(shard_end, begin, slot.end)};
}

std::vector<OwnedPiece> GradientBuffer::owned_pieces() const {
  if (!whole_.empty()) return whole_pieces();
  std::vector<OwnedPiece> pieces;
  for (const Bucket& bucket : buckets_) {
    for (const ParameterSlot& slot : bucket.slots) {
      const auto [flat_begin, flat_end] = owned_range(bucket, slot);
      const int64_t begin = flat_begin - slot.begin, end = flat_end - slot.begin;
      const at::Tensor& gradient = slot.parameter->main_gradient;
      const at::Tensor weights = shares_memory_ ? slice(parameters_, slot.begin, slot.end)
                                                : slot.parameter->lasting().detach().view(-1);
      const int64_t in_one = (slot.end - slot.begin) / weights.numel();
      pieces.push_back(
          {.parameter = slot.parameter,
           .begin = begin,
           .end = end,
           .weights = slice(weights, begin / in_one, (end + in_one - 1) / in_one),
           .gradients = gradient.defined() ? slice(gradient.view(-1), begin, end) : gradient});
    }
  }
  // Whole parameters come to the optimizer in the order of the model, pieces in that of the buffer.
  if (!sharded()) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<OptimizerPiece> GradientBuffer::optimizer_pieces() const {
  if (owned_parameters_) {
    if (const auto joined = owned_parameters_->joined_piece()) return {*joined};
  }
  if (!has_flat_pieces()) return DataParallel::optimizer_pieces();
  std::vector<OptimizerPiece> pieces;
  for (const Bucket& bucket : buckets_) {
    const auto [begin, end] = shard_range(bucket);
    pieces.push_back({bucket.slots.front().parameter, slice(parameters_, begin, end)});
  }
  return pieces;
}

std::vector<at::Tensor> GradientBuffer::step_gradients(c10::ScalarType type) {
  if (owned_parameters_ && owned_parameters_->joined_piece()) {
    return {owned_parameters_->joined_gradient(type)};
  }
  std::vector<at::Tensor> gradients;
  if (has_flat_pieces()) {
    for (const Bucket& bucket : buckets_) {
      const auto [begin, end] = shard_range(bucket);
      const at::Tensor part =
          has_flat_gradients() ? slice(gradients_, begin, end) : own_gradients(bucket, begin, end);
      gradients.push_back(part.to(type));
    }
  } else {
    gradients = DataParallel::step_gradients(type);
    if (options_.own_gradients == OwnGradients::kUntilZeroed) {
      for (at::Tensor& gradient : gradients) gradient = in_own_memory(gradient);
    }
  }
  if (options_.own_gradients == OwnGradients::kUntilStep) drop_own_gradients();
  if (options_.keeps_step_gradients) step_gradients_ = gradients;
  return gradients;
}

int64_t GradientBuffer::padding_elements(const std::vector<Bucket>& buckets) {
  int64_t elements = buckets.empty() ? 0 : buckets.back().end;
  for (const Bucket& bucket : buckets) {
    for (const ParameterSlot& slot : bucket.slots) elements -= slot.end - slot.begin;
  }
  return elements;
}

}  // namespace models
