#include "models/data_parallel/zero_gathers.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/data_parallel/zero_gradients.h"
#include "models/shard/unbacked_tensor.h"

namespace models {

using estimator::MemoryCategory;

namespace {

struct NamedCalls {
  const char* part_of_name;
  CallsBetween calls;
};

/// The model and its decoder; a layer; its attention; its MLP; the activation. In the backward a
/// layer's last module comes first.
constexpr const char* kOutputLayer = "output_layer";
constexpr std::array<NamedCalls, 8> kCalls = {{{"word_embeddings", {.forward = 2}},
                                               {"input_layernorm", {.forward = 1}},
                                               {"self_attention.query", {.forward = 1}},
                                               {"linear_proj", {.backward = 1}},
                                               {"mlp.gate", {.forward = 1, .backward = 1}},
                                               {"mlp.up", {.forward = 1}},
                                               {"linear_fc2", {.backward = 2}},
                                               {kOutputLayer, {.backward = 1}}}};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

CallsBetween calls_before(const std::string& parameter, bool is_first_layer) {
  if (contains(parameter, "final_layernorm")) return {.backward = 1};  // the decoder
  const auto found = std::find_if(kCalls.begin(), kCalls.end(), [&](const NamedCalls& named) {
    return contains(parameter, named.part_of_name);
  });
  if (found == kCalls.end()) return {};
  CallsBetween calls = found->calls;
  if (is_first_layer && contains(parameter, "input_layernorm")) ++calls.forward;  // the positions
  return calls;
}

ZeroGathers::ZeroGathers(ZeroGathersOptions options) : options_(std::move(options)) {
  if (options_.overlap) gathers_.emplace(options_.device, &options_.observer);
}

void ZeroGathers::set_parameters(const ParameterList& parameters) {
  for (Parameter* parameter : parameters) {
    Held& held = held_.emplace_back();
    held.parameter = parameter;
    held.number = static_cast<int64_t>(held_.size());
    held.elements = parameter->value.numel();
    held.is_persistent = held.elements <= options_.persistent_elements;
    held_of_[parameter] = &held;
  }
}

ZeroGathers::Module& ZeroGathers::module_of(const void* module, const ParameterList& parameters) {
  const auto [found, is_new] = modules_.try_emplace(module);
  if (!is_new) return found->second;
  for (const Parameter* parameter : parameters) {
    found->second.held.push_back(held_of_.at(parameter));
  }
  Held& first = *found->second.held.front();
  // A second module with the same parameter is the output layer of tied embeddings.
  const std::string name = first.is_of_module ? kOutputLayer : first.parameter->name;
  found->second.calls_before = calls_before(name, contains(name, "layers.0."));
  first.is_of_module = true;
  return found->second;
}

void ZeroGathers::start_gather(std::vector<Held*> held) {
  std::erase_if(held, [](const Held* one) { return one->is_whole || one->gather; });
  if (held.empty()) return;
  const c10::NoGradGuard no_grad;
  const ModuleScope scope(options_.observer, kZeroModule);
  std::optional<SideStream::Scope> beside;
  if (gathers_) beside.emplace(*gathers_);
  const auto gather = std::make_shared<Gather>();
  gather->held = std::move(held);
  for (Held* one : gather->held) {
    one->gather = gather;
    live_ += one->elements;
  }
  const bool one_by_one = gather->held.size() == 1 || !options_.data_group;
  if (!one_by_one) return gather_several(*gather);
  for (Held* one : gather->held) gather_one(*one, *gather);
}

/// The parameter's own memory takes the parts; that of a single rank is the whole.
void ZeroGathers::gather_one(Held& held, Gather& gather) {
  const at::Tensor &value = held.parameter->value, &part = held.parameter->part;
  const int64_t elements = part.numel() * group_size(options_.data_group);
  give_memory(value, elements * value.element_size());
  const at::Tensor whole = memory_as(value, {elements});
  if (!options_.data_group) {
    whole.copy_(part);
  } else {
    gather.call = options_.data_group->start_all_gather(whole, part);
  }
}

void ZeroGathers::gather_several(Gather& gather) {
  std::vector<at::Tensor> parts;
  int64_t elements = 0;
  for (const Held* held : gather.held) {
    parts.push_back(held->parameter->part);
    elements += parts.back().numel();
  }
  gather.flat = at::empty({elements * options_.data_group->size()}, parts.front().options());
  at::Tensor mine = gather.flat.narrow(0, elements * options_.data_group->index(), elements);
  at::cat_out(mine, parts);
  gather.call = options_.data_group->start_all_gather(gather.flat, mine);
}

/// The flat tensor lasts until somebody has waited for each of its parameters.
void ZeroGathers::wait(Held& held) {
  const std::shared_ptr<Gather> gather = std::exchange(held.gather, nullptr);
  if (!gather || gather->is_over) return;
  const c10::NoGradGuard no_grad;
  const ModuleScope scope(options_.observer, kZeroModule);
  std::optional<SideStream::Scope> beside;
  if (gathers_) beside.emplace(*gathers_);
  gather->call.wait();
  gather->is_over = true;
  if (gather->flat.defined()) copy_out(*gather);
  for (Held* one : gather->held) is_whole(*one);
}

void ZeroGathers::copy_out(const Gather& gather) {
  const int64_t ranks = options_.data_group->size();
  const int64_t elements_of_rank = gather.flat.numel() / ranks;
  int64_t offset = 0;
  for (const Held* held : gather.held) {
    const int64_t part = held->parameter->part.numel();
    std::vector<at::Tensor> parts;
    for (int64_t rank = 0; rank * part < held->elements; ++rank) {
      parts.push_back(gather.flat.narrow(
          0, rank * elements_of_rank + offset, std::min(part, held->elements - rank * part)));
    }
    const at::Tensor& value = held->parameter->value;
    give_memory(value, held->elements * value.element_size());
    at::Tensor whole = memory_as(value, {held->elements});
    at::cat_out(whole, parts);
    offset += part;
  }
}

void ZeroGathers::is_whole(Held& held) {
  held.is_whole = true;
  options_.observer.memory_lasts(held.parameter->value,
                                 {MemoryCategory::kParameter, kZeroModule, held.parameter->name});
}

void ZeroGathers::start_forward() {
  wait_for_all();
  for (Held& held : held_) held.fetched_for = -1;
  if (trace_ == Trace::kRecording) complete_trace();
  if (trace_ == Trace::kNone) trace_ = Trace::kRecording;
  queue_.assign(uses_.begin(), uses_.end());
  step_ = 0;
  live_ = 0;
}

/// What is still on its way when a forward begins is released.
void ZeroGathers::wait_for_all() {
  for (Held& held : held_) {
    if (!held.gather) continue;
    wait(held);
    release(held);
  }
}

void ZeroGathers::complete_trace() {
  trace_ = Trace::kComplete;
  for (std::size_t step = 0; step < order_.size(); ++step) {
    for (Held* held : order_[step]->held) uses_.push_back({held, static_cast<int64_t>(step)});
  }
}

void ZeroGathers::before(const void* module, const ParameterList& parameters, bool forward) {
  Module& one = module_of(module, parameters);
  if (trace_ == Trace::kRecording) order_.push_back(&one);
  const int others = forward ? one.calls_before.forward : one.calls_before.backward;
  for (int call = 0; call < others; ++call) prefetch();
  start_gather(one.held);
  for (Held* held : one.held) {
    held->users.insert(module);
    wait(*held);
  }
  if (gathers_) gathers_->join();
  take_from_queue(one);
  prefetch();
  ++step_;
}

void ZeroGathers::take_from_queue(const Module& module) {
  std::size_t missing = 0;
  for (const Held* held : module.held) missing += held->fetched_for < step_ ? 1 : 0;
  for (; missing > 0 && !queue_.empty(); --missing) {
    queue_.front().held->fetched_for = queue_.front().step;
    queue_.pop_front();
  }
}

void ZeroGathers::prefetch() {
  const int64_t most = std::min(options_.live_elements - live_, options_.prefetch_elements);
  std::vector<Held*> held;
  for (int64_t elements = 0; !queue_.empty() && elements < most; queue_.pop_front()) {
    const Use& use = queue_.front();
    use.held->fetched_for = std::max(use.held->fetched_for, use.step);
    const bool is_there = use.held->is_whole || use.held->gather;
    if (is_there || std::find(held.begin(), held.end(), use.held) != held.end()) continue;
    held.push_back(use.held);
    elements += use.held->elements;
  }
  std::sort(held.begin(), held.end(), [this](const Held* one, const Held* other) {
    return one->number < other->number;
  });
  start_gather(std::move(held));
}

/// __params_to_release, whose results are cached for as long as the order holds.
const std::set<const ZeroGathers::Held*>& ZeroGathers::to_release(const Module& module) {
  const auto [found, is_new] = released_at_.try_emplace({&module, step_});
  if (is_new) found->second = not_used_soon(module);
  return found->second;
}

std::set<const ZeroGathers::Held*> ZeroGathers::not_used_soon(const Module& module) const {
  std::set<const Held*> released;
  for (const Held* held : module.held) {
    if (!held->is_persistent && held->fetched_for <= step_) released.insert(held);
  }
  int64_t elements = 0;
  for (auto step = static_cast<std::size_t>(step_);
       step < order_.size() && elements < options_.reuse_elements;
       ++step) {
    for (const Held* held : order_[step]->held) {
      released.erase(held);
      elements += held->elements;
    }
  }
  return released;
}

void ZeroGathers::after(const void* module) {
  const Module& one = modules_.at(module);
  const bool all = trace_ != Trace::kComplete;
  for (Held* held : one.held) held->users.erase(module);
  for (Held* held : one.held) {
    if (all || to_release(one).count(held) != 0) release(*held);
  }
}

void ZeroGathers::release(Held& held) {
  if (!held.is_whole || !held.users.empty()) return;
  take_memory(held.parameter->value);
  held.is_whole = false;
  live_ -= held.elements;
}

void ZeroGathers::release_all() {
  for (Held& held : held_) {
    wait(held);
    held.users.clear();
    release(held);
  }
}

/// _allgather_params_coalesced: one call for each of them.
void ZeroGathers::gather_persistent() {
  const c10::NoGradGuard no_grad;
  std::vector<Held*> started;
  for (Held& held : held_) {
    if (!held.is_persistent) continue;
    held.gather = std::make_shared<Gather>();
    gather_one(held, *held.gather);
    started.push_back(&held);
  }
  for (Held* held : started) {
    held->gather->call.wait();
    held->gather.reset();
    is_whole(*held);
  }
}

}  // namespace models
