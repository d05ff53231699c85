// The part of GradientBuffer that deals with gradients which stay autograd's own for a while.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "models/data_parallel/gradient_buffer.h"

namespace models {

using estimator::MemoryCategory;

namespace {

/// DeepSpeed's reduce_bucket_size, its default (runtime/zero/constants.py, v0.5.10).
constexpr int64_t kReduceBucketElements = 500'000'000;

at::Tensor flatten(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) return tensors.front().view(-1);
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.view(-1));
  return at::cat(flat);
}

void average(at::Tensor& flat, Communicator& group) {
  flat.mul_(1.0 / static_cast<double>(group.size()));
  group.all_reduce(flat);
}

/// All-reduced as one and copied back (allreduce_and_copy in stage_1_and_2.py).
void average_together(std::vector<at::Tensor>& gradients, Communicator& group) {
  if (gradients.empty()) return;
  at::Tensor flat = flatten(gradients);
  average(flat, group);
  int64_t offset = 0;
  for (at::Tensor& gradient : gradients) {
    if (gradients.size() > 1) {
      gradient.copy_(flat.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
    }
    offset += gradient.numel();
  }
  gradients.clear();
}

}  // namespace

template <class Visit>
void GradientBuffer::for_each_parameter(Visit&& visit) const {
  for (const Bucket& bucket : buckets_) {
    for (const ParameterSlot& slot : bucket.slots) visit(*slot.parameter);
  }
}

void GradientBuffer::drop_own_gradients() {
  for_each_parameter([this](Parameter& parameter) {
    parameter.value.mutable_grad().reset();
    if (!has_flat_gradients()) parameter.main_gradient.reset();
  });
}

void GradientBuffer::start_backward() {
  if (options_.own_gradients == OwnGradients::kUntilNextBackward) drop_own_gradients();
}

void GradientBuffer::finish_backward() {
  switch (options_.own_gradients) {
    case OwnGradients::kAdded:
      return;
    case OwnGradients::kUntilSummed:
      add_own_gradients();
      return drop_own_gradients();
    case OwnGradients::kUntilNextBackward:
      call_own_gradients_lasting();
      return add_own_gradients();
    case OwnGradients::kUntilStep:
    case OwnGradients::kUntilZeroed:
      return call_own_gradients_lasting();
  }
}

/// BF16Optimizer casts each gradient before it adds it (update_hp_grads); nanotron's accumulator
/// adds it as it is (_accumulate_grad).
void GradientBuffer::add_own_gradients() {
  const c10::NoGradGuard no_grad;
  const bool casts = options_.own_gradients == OwnGradients::kUntilNextBackward;
  for_each_parameter([casts](Parameter& parameter) {
    at::Tensor& sum = parameter.main_gradient;
    const at::Tensor& own = parameter.value.grad();
    if (own.defined()) sum.add_(casts ? own.to(sum.scalar_type()) : own);
  });
}

void GradientBuffer::call_own_gradients_lasting() {
  for_each_parameter([this](Parameter& parameter) {
    const at::Tensor& own = parameter.value.grad();
    if (!own.defined() || own.is_same(parameter.main_gradient)) return;
    observer().memory_lasts(own, {MemoryCategory::kGradient, "gradients", parameter.name});
    if (!has_flat_gradients()) parameter.main_gradient = own;
  });
}

/// As ZeRO stage 1 does under a pipeline (reduce_gradients in stage_1_and_2.py, v0.5.10, where
/// contiguous_gradients is off): whole gradients, flattened up to the bucket's size.
void GradientBuffer::reduce_own_gradients() {
  if (!options_.data_group) return;
  const DirectionScope direction = once_in(estimator::Direction::kReduceGradients);
  const ModuleScope module(observer(), "gradients");
  std::vector<at::Tensor> together;
  int64_t elements = 0;
  for_each_parameter([&](Parameter& parameter) {
    if (elements + parameter.value.numel() > kReduceBucketElements) {
      average_together(together, *options_.data_group);
      elements = 0;
    }
    elements += parameter.value.numel();
    together.push_back(parameter.value.grad());
  });
  average_together(together, *options_.data_group);
}

/// Gradients that are summed in a buffer of their own are copied back to nobody.
void GradientBuffer::finish_reducer() {
  if (!reducer_ || has_flat_gradients()) return;
  const DirectionScope direction = once_in(estimator::Direction::kReduceGradients);
  const ModuleScope module(observer(), "gradients");
  reducer_->copy_back(buckets_);
}

/// In the order in which gradients came (rebuild_buckets in reducer.cpp).
void GradientBuffer::rebuild_buckets() {
  if (!records_arrivals_ || arrived_.empty()) return;
  records_arrivals_ = false;
  set_buckets(lay_out_reducer_buckets(arrived_, options_.reducer->shape));
  reducer_->make(buckets_);
}

void GradientBuffer::set_buckets(std::vector<Bucket> buckets) {
  buckets_ = std::move(buckets);
  missing_contributions_.assign(buckets_.size(), 0);
  started_.assign(buckets_.size(), false);
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    for (const ParameterSlot& slot : buckets_[index].slots) {
      Parameter& parameter = *slot.parameter;
      parameter.contribution_added = [this, index, &parameter] {
        contribution_added(parameter, index);
      };
    }
  }
}

void GradientBuffer::contribution_added(Parameter& parameter, std::size_t bucket) {
  if (missing_contributions_[bucket] == 0) return;  // not in the last micro-batch
  if (records_arrivals_) arrived_.push_back(&parameter);
  if (--missing_contributions_[bucket] > 0) return;
  if (!reducer_ || !options_.reducer->is_torchs()) return reduce(bucket);
  // PyTorch's reducer keeps their order (mark_bucket_ready).
  for (; next_ < buckets_.size() && missing_contributions_[next_] == 0; ++next_) reduce(next_);
}

std::optional<int64_t> GradientBuffer::gradient_elements() const {
  if (options_.own_gradients != OwnGradients::kUntilZeroed) return std::nullopt;
  int64_t elements = 0;
  for_each_parameter([&elements](const Parameter& parameter) {
    const at::Tensor& gradient = parameter.main_gradient;
    elements += gradient.defined() ? elements_of_memory(gradient) : parameter.value.numel();
  });
  return elements;
}

/// In the order of the model, whatever that of the buckets is.
std::vector<OwnedPiece> GradientBuffer::whole_pieces() const {
  std::vector<OwnedPiece> pieces;
  for (const Parameter* parameter : whole_) {
    const at::Tensor& gradient = parameter->main_gradient;
    pieces.push_back({.parameter = parameter,
                      .begin = 0,
                      .end = parameter->value.numel(),
                      .weights = parameter->value.detach().view(-1),
                      .gradients = gradient.defined() ? gradient.view(-1) : gradient});
  }
  return pieces;
}

/// BF16Optimizer's flat fp32 gradients travel as one bf16 copy (allreduce_bucket in
/// runtime/engine.py: communication_data_type is bf16 where nothing is said).
void GradientBuffer::reduce_in_parameter_type() {
  if (!options_.data_group || !gradients_.defined()) return;
  const DirectionScope direction = once_in(estimator::Direction::kReduceGradients);
  const ModuleScope module(observer(), "gradients");
  at::Tensor sent = gradients_.to(buckets_.front().slots.front().parameter->value.scalar_type());
  average(sent, *options_.data_group);
  gradients_.copy_(sent);
}

at::Tensor GradientBuffer::own_gradients(const Bucket& bucket, int64_t begin, int64_t end) const {
  std::vector<at::Tensor> parts;
  int64_t covered = begin;
  const auto pad_to = [&](int64_t place) {
    if (place > covered) {
      const at::Tensor& like = bucket.slots.front().parameter->value;
      parts.push_back(at::zeros({place - covered}, like.options().requires_grad(false)));
    }
    covered = std::max(covered, place);
  };
  for (const ParameterSlot& slot : bucket.slots) {
    const int64_t first = std::max(slot.begin, begin), last = std::min(slot.end, end);
    if (first >= last) continue;
    pad_to(first);
    const at::Tensor whole = slot.parameter->value.grad().view(-1);
    parts.push_back(whole.narrow(0, first - slot.begin, last - first));
    covered = last;
  }
  pad_to(end);
  return flatten(parts);
}

}  // namespace models
