#include "models/data_parallel/owned_parameters.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace models {

using estimator::MemoryCategory;

namespace {

int64_t elements_of(const std::vector<Parameter*>& parameters) {
  int64_t elements = 0;
  for (const Parameter* parameter : parameters) elements += parameter->value.numel();
  return elements;
}

void move_to(const at::Tensor& flat, const std::vector<Parameter*>& parameters) {
  int64_t begin = 0;
  for (Parameter* parameter : parameters) {
    at::Tensor& value = parameter->value;
    at::Tensor place = flat.narrow(0, begin, value.numel()).view(value.sizes());
    place.copy_(value);
    value.set_data(place);
    begin += value.numel();
  }
}

}  // namespace

std::vector<std::vector<Parameter*>> part_by_size(const ParameterList& parameters, int64_t ranks) {
  ParameterList falling = parameters;
  std::stable_sort(falling.begin(), falling.end(), [](const Parameter* a, const Parameter* b) {
    return a->value.numel() > b->value.numel();
  });
  std::vector<std::vector<Parameter*>> owned(ranks);
  std::vector<int64_t> elements(ranks, 0);
  for (Parameter* parameter : falling) {
    const auto rank = std::min_element(elements.begin(), elements.end()) - elements.begin();
    owned[rank].push_back(parameter);
    elements[rank] += parameter->value.numel();
  }
  return owned;
}

OwnedParameters::OwnedParameters(const ParameterList& parameters,
                                 std::shared_ptr<Communicator> data_group,
                                 Observer& observer)
    : data_group_(std::move(data_group)) {
  const c10::NoGradGuard no_grad;
  int64_t elements = 0;
  for (const Parameter* parameter : parameters) elements += parameter->value.numel();
  flat_ = at::empty({elements}, parameters.front()->value.options().requires_grad(false));
  observer.memory_lasts(flat_, {MemoryCategory::kParameter, "parameter_buffer", ""});
  int64_t begin = 0;
  for (std::vector<Parameter*>& owned : part_by_size(parameters, group_size(data_group_))) {
    const int64_t length = elements_of(owned);
    owners_.push_back({std::move(owned), flat_.narrow(0, begin, length)});
    move_to(owners_.back().flat, owners_.back().parameters);
    begin += length;
  }
}

const OwnedParameters::Owner& OwnedParameters::mine() const {
  return owners_[data_group_ ? data_group_->index() : 0];
}

bool OwnedParameters::is_mine(const Parameter& parameter) const {
  const std::vector<Parameter*>& owned = mine().parameters;
  return std::find(owned.begin(), owned.end(), &parameter) != owned.end();
}

std::vector<OptimizerPiece> OwnedParameters::optimizer_pieces() const {
  if (mine().parameters.empty()) return {};
  return {{mine().parameters.front(), mine().flat}};
}

std::vector<at::Tensor> OwnedParameters::step_gradients(c10::ScalarType type) const {
  if (mine().parameters.empty()) return {};
  std::vector<at::Tensor> gradients;
  for (const Parameter* parameter : mine().parameters) {
    gradients.push_back(parameter->main_gradient.view(-1));
  }
  return {at::cat(gradients).to(type)};
}

void OwnedParameters::broadcast() {
  if (!data_group_) return;
  std::vector<PendingCall> pending;
  for (std::size_t rank = 0; rank < owners_.size(); ++rank) {
    if (owners_[rank].parameters.empty()) continue;
    pending.push_back(data_group_->start_broadcast(owners_[rank].flat, static_cast<int64_t>(rank)));
  }
  for (PendingCall& call : pending) call.wait();
}

}  // namespace models
