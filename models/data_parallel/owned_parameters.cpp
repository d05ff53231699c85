#include "models/data_parallel/owned_parameters.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "estimator/plan/dealt_parameters.h"

namespace models {

using estimator::MemoryCategory;

namespace {

int64_t elements_of(const ParameterList& parameters) {
  int64_t elements = 0;
  for (const Parameter* parameter : parameters) elements += parameter->value.numel();
  return elements;
}

at::Tensor empty_for(const ParameterList& parameters) {
  return at::empty({elements_of(parameters)},
                   parameters.front()->value.options().requires_grad(false));
}

/// Visits each parameter with its place in the flat tensor.
template <class Visit>
void for_each_place(const at::Tensor& flat, const ParameterList& parameters, Visit&& visit) {
  int64_t begin = 0;
  for (Parameter* parameter : parameters) {
    const at::Tensor& value = parameter->value;
    visit(*parameter, flat.narrow(0, begin, value.numel()).view(value.sizes()));
    begin += value.numel();
  }
}

/// As _flatten_dense_tensors of torch: a view of a single tensor, a copy of several.
at::Tensor flattened(const ParameterList& parameters) {
  if (parameters.size() == 1) return parameters.front()->value.detach().view(-1);
  std::vector<at::Tensor> flat;
  for (const Parameter* parameter : parameters) flat.push_back(parameter->value.detach().view(-1));
  return at::cat(flat);
}

/// InternEvo's: those of each owner lie together, one owner behind the other.
class JoinedParameters final : public OwnedParameters {
 public:
  JoinedParameters(const ParameterList& parameters,
                   const std::shared_ptr<Communicator>& data_group,
                   Observer& observer)
      : OwnedParameters(part_by_size(parameters, group_size(data_group)), data_group) {
    const c10::NoGradGuard no_grad;
    const at::Tensor all = empty_for(parameters);
    observer.memory_lasts(all, {MemoryCategory::kParameter, "parameter_buffer", ""});
    int64_t begin = 0;
    for (const ParameterList& of_owner : owned()) {
      flat_.push_back(all.narrow(0, begin, elements_of(of_owner)));
      for_each_place(flat_.back(), of_owner, [](Parameter& parameter, const at::Tensor& place) {
        parameter.move_to(place);
      });
      begin += flat_.back().numel();
    }
  }

  std::optional<OptimizerPiece> joined_piece() const override {
    if (mine().empty()) return std::nullopt;
    return OptimizerPiece{mine().front(), flat_[my_rank()]};
  }

 private:
  at::Tensor message(std::size_t rank) const override { return flat_[rank]; }

  std::vector<at::Tensor> flat_;  ///< of each data rank
};

/// Megatron-LM's: they lie where they lay.
class DealtParameters final : public OwnedParameters {
 public:
  DealtParameters(const ParameterList& parameters, const std::shared_ptr<Communicator>& data_group)
      : OwnedParameters(deal_in_turn(parameters, group_size(data_group)), data_group) {}

 private:
  at::Tensor message(std::size_t rank) const override {
    return rank == my_rank() ? flattened(mine()) : empty_for(owned()[rank]);
  }
  void received(const at::Tensor& message, std::size_t rank) const override {
    for_each_place(message, owned()[rank], [](const Parameter& parameter, const at::Tensor& place) {
      parameter.value.copy_(place);
    });
  }
};

}  // namespace

std::vector<ParameterList> part_by_size(const ParameterList& parameters, int64_t ranks) {
  ParameterList falling = parameters;
  std::stable_sort(falling.begin(), falling.end(), [](const Parameter* a, const Parameter* b) {
    return a->value.numel() > b->value.numel();
  });
  std::vector<ParameterList> owned(ranks);
  std::vector<int64_t> elements(ranks, 0);
  for (Parameter* parameter : falling) {
    const auto rank = std::min_element(elements.begin(), elements.end()) - elements.begin();
    owned[rank].push_back(parameter);
    elements[rank] += parameter->value.numel();
  }
  return owned;
}

std::vector<ParameterList> deal_in_turn(const ParameterList& parameters, int64_t ranks) {
  ParameterList rising = parameters;
  std::stable_sort(rising.begin(), rising.end(), [](const Parameter* a, const Parameter* b) {
    return a->value.numel() < b->value.numel();
  });
  std::vector<ParameterList> owned(ranks);
  for (std::size_t i = 0; i < rising.size(); ++i) {
    owned[estimator::owner_in_turn(static_cast<int64_t>(i), ranks)].push_back(rising[i]);
  }
  return owned;
}

OwnedParameters::OwnedParameters(std::vector<ParameterList> owned,
                                 std::shared_ptr<Communicator> data_group)
    : owned_(std::move(owned)), data_group_(std::move(data_group)) {}

std::size_t OwnedParameters::my_rank() const {
  return data_group_ ? static_cast<std::size_t>(data_group_->index()) : 0;
}

bool OwnedParameters::is_mine(const Parameter& parameter) const {
  return std::find(mine().begin(), mine().end(), &parameter) != mine().end();
}

at::Tensor OwnedParameters::joined_gradient(c10::ScalarType type) const {
  std::vector<at::Tensor> gradients;
  for (const Parameter* parameter : mine()) gradients.push_back(parameter->main_gradient.view(-1));
  return at::cat(gradients).to(type);
}

void OwnedParameters::hand_out() {
  if (!data_group_) return;
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> messages(owned_.size());
  if (!mine().empty()) messages[my_rank()] = message(my_rank());
  std::vector<PendingCall> pending;
  for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
    if (owned_[rank].empty()) continue;
    if (rank != my_rank()) messages[rank] = message(rank);
    pending.push_back(data_group_->start_broadcast(messages[rank], static_cast<int64_t>(rank)));
  }
  for (PendingCall& call : pending) call.wait();
  for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
    if (rank != my_rank() && !owned_[rank].empty()) received(messages[rank], rank);
  }
}

std::unique_ptr<OwnedParameters> make_owned_parameters(
    WholeOwners owners,
    const ParameterList& parameters,
    const std::shared_ptr<Communicator>& data_group,
    Observer& observer) {
  switch (owners) {
    case WholeOwners::kNone:
      return nullptr;
    case WholeOwners::kBySize:
      return std::make_unique<JoinedParameters>(parameters, data_group, observer);
    case WholeOwners::kInTurn:
      break;
  }
  return std::make_unique<DealtParameters>(parameters, data_group);
}

}  // namespace models
