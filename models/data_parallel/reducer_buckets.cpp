#include "models/data_parallel/reducer_buckets.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "estimator/base/units.h"

namespace models {

using estimator::MemoryCategory;

namespace {

at::TensorOptions options_of(const std::vector<Bucket>& buckets) {
  return buckets.front().slots.front().parameter->value.options().requires_grad(false);
}

/// A flat copy of a bucket's parameters on its way.
struct Sending {
  Sending(const Bucket& of, Communicator& group) : bucket(&of) {
    std::vector<at::Tensor> values;
    for (const ParameterSlot& slot : of.slots) values.push_back(slot.parameter->value.view(-1));
    flat = at::cat(values);
    call = group.start_broadcast(flat, 0);
  }

  void finish() {
    call.wait();
    for (const ParameterSlot& slot : bucket->slots) {
      const at::Tensor received = flat.narrow(0, slot.begin - bucket->begin, slot.end - slot.begin);
      slot.parameter->value.copy_(received.view(slot.parameter->value.sizes()));
    }
  }

  const Bucket* bucket;
  at::Tensor flat;
  PendingCall call;
};

}  // namespace

void send_first_values(const ParameterList& parameters, Communicator& group) {
  constexpr int64_t kBytes = 250 * estimator::kMiB;
  constexpr std::size_t kUnderWay = 2;
  const c10::NoGradGuard no_grad;
  std::map<c10::ScalarType, ParameterList> types;
  for (Parameter* parameter : parameters)
    types[parameter->value.scalar_type()].push_back(parameter);
  for (const auto& [type, of_type] : types) {
    const int64_t elements = kBytes / static_cast<int64_t>(c10::elementSize(type));
    const std::vector<Bucket> buckets =
        lay_out_reducer_buckets(of_type, {.first = elements, .others = elements});
    std::deque<Sending> under_way;
    const auto finish_first = [&under_way] {
      under_way.front().finish();
      under_way.pop_front();
    };
    for (const Bucket& bucket : buckets) {
      if (under_way.size() >= kUnderWay) finish_first();
      under_way.emplace_back(bucket, group);
    }
    while (!under_way.empty()) finish_first();
  }
}

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
