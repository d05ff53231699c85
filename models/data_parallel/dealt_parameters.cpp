#include "models/data_parallel/dealt_parameters.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace models {
namespace {

int64_t elements_of_all(const ParameterList& parameters) {
  int64_t elements = 0;
  for (const Parameter* parameter : parameters) elements += parameter->value.numel();
  return elements;
}

/// As _flatten_dense_tensors of torch: a view of a single tensor, a copy of several.
at::Tensor flattened(const ParameterList& parameters) {
  if (parameters.size() == 1) return parameters.front()->value.detach().view(-1);
  std::vector<at::Tensor> flat;
  for (const Parameter* parameter : parameters) flat.push_back(parameter->value.detach().view(-1));
  return at::cat(flat);
}

void copy_from(const at::Tensor& flat, const ParameterList& parameters) {
  int64_t begin = 0;
  for (Parameter* parameter : parameters) {
    at::Tensor& value = parameter->value;
    value.copy_(flat.narrow(0, begin, value.numel()).view(value.sizes()));
    begin += value.numel();
  }
}

}  // namespace

std::vector<ParameterList> deal_in_turn(const ParameterList& parameters, int64_t ranks) {
  ParameterList rising = parameters;
  std::stable_sort(rising.begin(), rising.end(), [](const Parameter* one, const Parameter* other) {
    return one->value.numel() < other->value.numel();
  });
  std::vector<ParameterList> owned(ranks);
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const auto turn = static_cast<int64_t>(i) % (2 * ranks);
    owned[turn < ranks ? turn : 2 * ranks - 1 - turn].push_back(rising[i]);
  }
  return owned;
}

DealtParameters::DealtParameters(const ParameterList& parameters,
                                 std::shared_ptr<Communicator> data_group)
    : data_group_(std::move(data_group)),
      owned_(deal_in_turn(parameters, group_size(data_group_))) {}

bool DealtParameters::is_mine(const Parameter& parameter) const {
  const ParameterList& mine = owned_[data_group_ ? data_group_->index() : 0];
  return std::find(mine.begin(), mine.end(), &parameter) != mine.end();
}

void DealtParameters::gather() const {
  if (!data_group_) return;
  const c10::NoGradGuard no_grad;
  const auto mine = static_cast<std::size_t>(data_group_->index());
  std::vector<at::Tensor> flat(owned_.size());
  if (!owned_[mine].empty()) flat[mine] = flattened(owned_[mine]);
  std::vector<PendingCall> pending;
  for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
    if (owned_[rank].empty()) continue;
    if (rank != mine) {
      flat[rank] = at::empty({elements_of_all(owned_[rank])},
                             owned_[rank].front()->value.options().requires_grad(false));
    }
    pending.push_back(data_group_->start_broadcast(flat[rank], static_cast<int64_t>(rank)));
  }
  for (PendingCall& call : pending) call.wait();
  for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
    if (rank != mine && !owned_[rank].empty()) copy_from(flat[rank], owned_[rank]);
  }
}

}  // namespace models
