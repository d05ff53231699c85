#include "models/data_parallel/reducer_buckets.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>

namespace models {

using estimator::MemoryCategory;

namespace {

at::TensorOptions options_of(const std::vector<Bucket>& buckets) {
  return buckets.front().slots.front().parameter->value.options().requires_grad(false);
}

}  // namespace

/// _ddp_init_helper in torch/nn/parallel/distributed.py.
std::vector<Bucket> first_reducer_buckets(const ParameterList& parameters,
                                          const ReducerOptions& options) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  if (options.rebuilds())
    return lay_out_reducer_buckets(parameters, {.first = kAll, .others = kAll});
  return lay_out_reducer_buckets(parameters, options.shape, /*reversed=*/true);
}

ReducerBuckets::ReducerBuckets(const std::vector<Bucket>& buckets,
                               const ReducerOptions& options,
                               Communicator& group,
                               Observer& observer)
    : options_(options), group_(group), observer_(observer) {
  make(buckets);
  if (!options_.finds_unused) return;
  int64_t parameters = 0;
  for (const Bucket& bucket : buckets) parameters += static_cast<int64_t>(bucket.slots.size());
  used_ = at::zeros({parameters}, options_of(buckets).dtype(at::kInt));
}

void ReducerBuckets::make(const std::vector<Bucket>& buckets) {
  tensors_.clear();
  const at::TensorOptions options = options_of(buckets);
  const auto lasting = [&](int64_t elements) {
    at::Tensor made = at::empty({elements}, options);
    observer_.memory_lasts(made, {MemoryCategory::kCommunication, "reducer_buckets", ""});
    return made;
  };
  const at::Tensor whole = options_.is_torchs() ? at::Tensor() : lasting(buckets.back().end);
  for (const Bucket& bucket : buckets) {
    const int64_t elements = bucket.end - bucket.begin;
    tensors_.push_back(whole.defined() ? whole.narrow(0, bucket.begin, elements)
                                       : lasting(elements));
  }
}

at::Tensor ReducerBuckets::place_of(const Bucket& bucket,
                                    std::size_t index,
                                    const ParameterSlot& slot) const {
  return tensors_[index]
      .narrow(0, slot.begin - bucket.begin, slot.end - slot.begin)
      .view(slot.parameter->value.sizes());
}

PendingCall ReducerBuckets::reduce(const std::vector<Bucket>& buckets,
                                   std::size_t index,
                                   int64_t replicas) {
  const c10::NoGradGuard no_grad;
  const at::Tensor part = at::scalar_tensor(1.0 / static_cast<double>(replicas));
  for (const ParameterSlot& slot : buckets[index].slots) {
    at::Tensor copy = place_of(buckets[index], index, slot);
    at::mul_out(copy, slot.parameter->value.grad(), part);
  }
  return group_.start_all_reduce(tensors_[index]);
}

PendingCall ReducerBuckets::reduce_used_map() {
  return used_.defined() ? group_.start_all_reduce(used_) : PendingCall();
}

void ReducerBuckets::copy_back(const std::vector<Bucket>& buckets) const {
  const c10::NoGradGuard no_grad;
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    for (const ParameterSlot& slot : buckets[index].slots) {
      slot.parameter->value.mutable_grad().copy_(place_of(buckets[index], index, slot));
    }
  }
}

}  // namespace models
