#include "models/data_parallel/zero_shards.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/data_parallel/zero_gradients.h"
#include "models/shard/kept_value.h"

namespace models {

using estimator::MemoryCategory;

struct ModuleOf {
  ZeroShards* owner;
  const void* module;
};

/// Identity on a module's input: its backward comes when the module's is over.
struct ModuleBackwardFunction : torch::autograd::Function<ModuleBackwardFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& input,
                            const ModuleOf& module) {
    keep(context, module);
    return input;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const ModuleOf& module = kept<ModuleOf>(context);
    module.owner->gathers_.after(module.module);
    return {gradients[0], at::Tensor()};
  }
};

std::vector<std::size_t> sub_groups(const std::vector<int64_t>& parts, int64_t elements) {
  std::vector<std::size_t> counts;
  int64_t in_group = elements;
  for (const int64_t part : parts) {
    if (in_group >= elements) {
      counts.push_back(0);
      in_group = 0;
    }
    ++counts.back();
    in_group += part;
  }
  return counts;
}

ZeroShards::ZeroShards(ZeroShardsOptions options)
    : options_(std::move(options)), gathers_(options_.gathers) {
  if (options_.gathers.overlap) reductions_.emplace(options_.gathers.device, &observer());
}

void ZeroShards::set_parameters(const ParameterList& parameters,
                                const std::vector<ParameterList>& groups) {
  gathers_.set_parameters(parameters);
  for (Parameter* parameter : parameters) slots_.push_back({.parameter = parameter});
  place(groups);
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot].parameter->part = part_of(flat_, slots_[slot]);
    when_gradient_is_there(*slots_[slot].parameter, [this, slot] { take(slot); });
  }
}

void ZeroShards::place(const std::vector<ParameterList>& groups) {
  std::map<const Parameter*, std::size_t> slot_of;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) slot_of[slots_[slot].parameter] = slot;
  int64_t elements = 0;
  std::vector<at::Tensor> parts;
  for (const ParameterList& group : groups) {
    std::vector<int64_t> sizes;
    for (const Parameter* parameter : group) sizes.push_back(parameter->part.numel());
    auto next = group.begin();
    for (const std::size_t count : sub_groups(sizes, options_.sub_group_elements)) {
      std::vector<std::size_t>& together = sub_groups_.emplace_back();
      for (; together.size() < count; ++next) {
        together.push_back(slot_of.at(*next));
        slots_[together.back()].begin = elements;
        elements += (*next)->part.numel();
        parts.push_back((*next)->part);
      }
    }
  }
  flat_ = joined_through_host(parts, elements, options_.device_computes);
  observer().memory_lasts(flat_, {MemoryCategory::kParameter, "parameter_buffer", ""});
}

at::Tensor ZeroShards::part_of(const at::Tensor& flat, const Slot& slot) const {
  return flat.narrow(0, slot.begin, slot.parameter->part.numel());
}

at::Tensor ZeroShards::run(const void* module,
                           const ParameterList& parameters,
                           const at::Tensor& input,
                           const Body& body) {
  gathers_.before(module, parameters, /*forward=*/true);
  at::Tensor output = body(
      input.requires_grad() ? ModuleBackwardFunction::apply(input, ModuleOf{this, module}) : input);
  gathers_.after(module);
  if (output.requires_grad()) {  // not in the forward of a segment that is recomputed
    output.register_hook([this, module, parameters](const at::Tensor&) {
      gathers_.before(module, parameters, /*forward=*/false);
    });
  }
  return output;
}

void ZeroShards::begin_iteration() {
  make_buffers();
  adds_ = false;
}

void ZeroShards::make_buffers() {
  if (bucket_.defined()) return;
  bucket_ = at::empty({options_.bucket_elements}, flat_.options());
  observer().memory_lasts(bucket_, {MemoryCategory::kCommunication, "reduce_bucket", ""});
  gradients_ = at::zeros({flat_.numel()}, flat_.options());
  observer().memory_lasts(gradients_, {MemoryCategory::kGradient, "gradient_buffer", ""});
}

/// reduce_independent_p_g_buckets_and_remove_grads: a gradient that does not fit stays where it is.
void ZeroShards::take(std::size_t number) {
  at::Tensor& gradient = slots_[number].parameter->value.mutable_grad();
  const int64_t elements = gradient.numel();
  if (elements_in_bucket_ + elements > options_.bucket_elements) reduce_bucket();
  if (reductions_) reductions_->wait_for_current();
  if (elements_in_bucket_ + elements <= options_.bucket_elements) {
    std::optional<SideStream::Scope> beside;
    if (reductions_) beside.emplace(*reductions_);
    const at::Tensor place = bucket_.narrow(0, elements_in_bucket_, elements);
    place.copy_(gradient.view(-1));
    gradient = place.view(gradient.sizes());
  }
  in_bucket_.push_back(number);
  elements_in_bucket_ += elements;
}

void ZeroShards::reduce_bucket() {
  if (in_bucket_.empty()) return;
  const ModuleScope module(observer(), kZeroModule);
  std::optional<SideStream::Scope> beside;
  if (reductions_) beside.emplace(*reductions_);
  std::sort(in_bucket_.begin(), in_bucket_.end());
  reduce_and_add();
  for (const std::size_t slot : in_bucket_) slots_[slot].parameter->value.mutable_grad().reset();
  in_bucket_.clear();
  elements_in_bucket_ = 0;
}

/// The parts of all gradients, rank by rank, padded (reduce_scatter_coalesced in
/// deepspeed/runtime/comm/coalesced_collectives.py).
std::vector<at::Tensor> ZeroShards::interleaved() const {
  std::vector<at::Tensor> tensors;
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    for (const std::size_t slot : in_bucket_) {
      const at::Tensor whole = slots_[slot].parameter->value.grad().view(-1);
      const int64_t part = slots_[slot].parameter->part.numel();
      const int64_t begin = std::min(rank * part, whole.numel());
      const int64_t end = std::min(begin + part, whole.numel());
      tensors.push_back(whole.narrow(0, begin, end - begin));
      if (end - begin < part) {
        tensors.push_back(at::empty({part - (end - begin)}, whole.options()));
      }
    }
  }
  return tensors;
}

/// A single gradient that divides evenly is reduced in its own memory.
void ZeroShards::reduce_and_add() {
  const Slot& first = slots_[in_bucket_.front()];
  const at::Tensor& gradient = first.parameter->value.grad();
  const bool in_place = in_bucket_.size() == 1 && gradient.numel() % ranks() == 0;
  const at::Tensor sent = in_place ? gradient.view(-1) : at::cat(interleaved());
  sent.div_(ranks());
  const std::shared_ptr<Communicator>& group = options_.gathers.data_group;
  const int64_t elements = sent.numel() / ranks();
  const at::Tensor mine = sent.narrow(0, group ? elements * group->index() : 0, elements);
  if (group) group->reduce_scatter(mine, sent);
  int64_t offset = 0;
  for (const std::size_t slot : in_bucket_) {
    const int64_t part = slots_[slot].parameter->part.numel();
    add(slots_[slot], mine.narrow(0, offset, part));
    offset += part;
  }
}

void ZeroShards::add(const Slot& slot, const at::Tensor& part) {
  const auto [begin, end] = slot.parameter->owned_range();
  if (begin == end) return;
  const at::Tensor place = part_of(gradients_, slot).narrow(0, 0, end - begin);
  const at::Tensor own = part.narrow(0, 0, end - begin);
  adds_ ? place.add_(own) : place.copy_(own);
}

void ZeroShards::finish_backward() {
  const c10::NoGradGuard no_grad;
  reduce_bucket();
  if (reductions_) reductions_->join();
  adds_ = true;
}

std::vector<OwnedPiece> ZeroShards::owned_pieces() const {
  std::vector<OwnedPiece> pieces;
  for (const Slot& slot : slots_) {
    const auto [begin, end] = slot.parameter->owned_range();
    OwnedPiece piece{.parameter = slot.parameter, .begin = begin, .end = end};
    piece.weights = slot.parameter->part.narrow(0, 0, end - begin);
    if (gradients_.defined()) {
      piece.gradients = part_of(gradients_, slot).narrow(0, 0, end - begin);
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<OptimizerPiece> ZeroShards::optimizer_pieces() const {
  std::vector<OptimizerPiece> pieces;
  for (const std::vector<std::size_t>& together : sub_groups_) {
    const Slot &first = slots_[together.front()], &last = slots_[together.back()];
    const int64_t end = last.begin + last.parameter->part.numel();
    pieces.push_back({first.parameter, flat_.narrow(0, first.begin, end - first.begin)});
  }
  return pieces;
}

std::vector<at::Tensor> ZeroShards::step_gradients(c10::ScalarType type) {
  gathers_.release_all();
  if (options_.checks_overflow) {
    agree_on_overflow({overflow_of(gradients_)}, options_.gathers.data_group);
  }
  std::vector<std::vector<at::Tensor>> parts;
  std::vector<at::Tensor> norms;
  for (const std::vector<std::size_t>& together : sub_groups_) {
    std::vector<at::Tensor>& own = parts.emplace_back();
    for (const std::size_t slot : together) own.push_back(part_of(gradients_, slots_[slot]));
    norms.push_back(
        norm_of_ranks(own, options_.gathers.data_group, flat_.options().dtype(at::kDouble)));
  }
  norm_ = norm_of_groups(norms);
  std::vector<at::Tensor> gradients;
  gradients.reserve(parts.size());
  for (const std::vector<at::Tensor>& own : parts) {
    gradients.push_back(joined(own).to(type).mul_(clipping_factor(norm_)));
  }
  return gradients;
}

void ZeroShards::gather_parameters() {
  gathers_.gather_persistent();
  norm_.item();
}

int64_t ZeroShards::parameter_padding() const {
  int64_t elements = flat_.numel();
  for (const OwnedPiece& piece : owned_pieces()) elements -= piece.end - piece.begin;
  return elements;
}

}  // namespace models
