#include "models/data_parallel/fully_sharded.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_chunk_cat.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/split_with_sizes_copy.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <utility>

#include "models/shard/host_work.h"
#include "models/shard/kept_value.h"
#include "models/shard/unbacked_tensor.h"

namespace models {

using estimator::MemoryCategory;

namespace {

std::vector<at::Tensor> parts_of(const std::vector<Parameter*>& parameters) {
  std::vector<at::Tensor> parts;
  parts.reserve(parameters.size());
  for (const Parameter* parameter : parameters) parts.push_back(parameter->part);
  return parts;
}

std::vector<int64_t> sizes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> sizes;
  sizes.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  return sizes;
}

int64_t sum_of(const std::vector<int64_t>& sizes) {
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  return sum;
}

/// The parts in the type of the computation, in one buffer.
std::vector<at::Tensor> cast(const std::vector<at::Tensor>& parts,
                             const std::vector<int64_t>& sizes,
                             c10::ScalarType type) {
  if (parts.front().scalar_type() == type) return parts;
  const at::Tensor flat = at::empty({sum_of(sizes)}, parts.front().options().dtype(type));
  std::vector<at::Tensor> cast = flat.split_with_sizes(sizes);
  at::_foreach_copy_(cast, parts);
  return cast;
}

/// As is_bw() in _fsdp_common.py.
bool is_in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }

}  // namespace

struct UnitOf {
  FullySharded* owner;
  std::size_t unit;
};

/// Identity on a unit's input: its backward comes when the unit's is over.
struct UnitBackwardFunction : torch::autograd::Function<UnitBackwardFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& input,
                            const UnitOf& unit) {
    keep(context, unit);
    return input;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const UnitOf& unit = kept<UnitOf>(context);
    unit.owner->after_backward(unit.unit);
    return {gradients[0], at::Tensor()};
  }
};

FullySharded::FullySharded(FullyShardedOptions options)
    : options_(std::move(options)),
      copy_in_stream_(options_.device, &options_.observer, /*high_priority=*/true),
      gather_stream_(options_.device, &options_.observer, /*high_priority=*/true),
      reduce_stream_(options_.device, &options_.observer, /*high_priority=*/true) {
  if (options_.replica_group) replica_stream_.emplace(options_.device, &options_.observer);
}

FullySharded::~FullySharded() = default;

void FullySharded::add_to_unit(Parameter& parameter) {
  if (parameter.chunk != options_.chunk) return;
  const auto unit = static_cast<std::size_t>(parameter.unit - first_unit_);
  if (unit >= units_.size()) units_.resize(unit + 1);
  units_[unit].parameters.push_back(&parameter);
  if (parameter.trained) units_[unit].trained.push_back(&parameter);
}

void FullySharded::set_parameters(ParameterStore& store, const ChunkUnits& units) {
  first_unit_ = units.first;
  last_unit_ = static_cast<std::size_t>(units.last - units.first);
  is_loop_ = units.is_loop;
  for (Parameter* parameter : store.in_order()) add_to_unit(*parameter);
  for (Parameter& leaf : store.more_leaves()) add_to_unit(leaf);
  for (Unit& unit : units_) {
    unit.stays_gathered = !options_.reshard_after_forward;
    unit.is_inside = options_.experts_are_units && unit.parameters.front()->expert;
    unit.group = unit.is_inside ? options_.expert_data_group : options_.data_group;
  }
  if (!options_.reshards_last) units_.at(last_unit_).stays_gathered = true;
  if (options_.experts_are_units) plan_gathering_ahead();
}

/// The unit, and the one inside of it.
std::vector<std::size_t> FullySharded::with_inside(std::size_t number) const {
  const std::size_t next = number + 1;
  if (next == units_.size() || !units_[next].is_inside) return {number};
  return {number, next};
}

/// Of the experts next to embedding and head, TorchTitan leaves the gathering to their layer.
void FullySharded::plan_gathering_ahead() {
  std::size_t before = 0;
  for (std::size_t number = 1; number < units_.size(); ++number) {
    if (units_[number].is_inside) continue;
    units_[before].ahead_in_forward =
        before == 0 ? std::vector<std::size_t>{number} : with_inside(number);
    units_[number].ahead_in_backward =
        number == last_unit_ ? std::vector<std::size_t>{before} : with_inside(before);
    before = number;
  }
}

/// What an all-gather of a unit reads and writes.
struct FullySharded::GatherBuffers {
  std::vector<at::Tensor> inputs;  ///< until the all-gather has started
  at::Tensor whole, mine;
};

FullySharded::GatherBuffers FullySharded::gather_buffers(const Unit& unit) {
  const std::vector<at::Tensor> parts = parts_of(unit.parameters);
  const std::vector<int64_t> sizes = sizes_of(parts);
  const at::TensorOptions options = unit.parameters.front()->value.options().requires_grad(false);
  const int64_t elements = sum_of(sizes);
  GatherBuffers buffers;
  buffers.inputs = cast(parts, sizes, options.dtype().toScalarType());
  buffers.whole = at::empty({elements * unit.group->size()}, options);
  buffers.mine = buffers.whole.narrow(0, elements * unit.group->index(), elements);
  at::_foreach_copy_(buffers.mine.split_with_sizes(sizes), buffers.inputs);
  return buffers;
}

/// What is done once belongs to the step that wrote the parameters, as in Megatron-LM's buffers.
std::unique_ptr<DirectionScope> FullySharded::once_in_step() const {
  if (!options_.gathers_once) return nullptr;
  return std::make_unique<DirectionScope>(
      observer(), estimator::Direction::kOptimizerStep, estimator::kNoMicroBatch, options_.chunk);
}

void FullySharded::start_gathering(Unit& unit) {
  const SideStream::Scope scope(copy_in_stream_);
  start_gathering_from_current(unit);
}

void FullySharded::start_gathering_from_current(Unit& unit) {
  if (unit.gathering || unit.is_whole) return;
  unit.gathering.emplace();
  if (!unit.group) return;
  const auto direction = once_in_step();
  const at::NoGradGuard no_grad;
  const ModuleScope module(observer(), kModule);
  const GatherBuffers buffers = gather_buffers(unit);
  unit.gathering->whole = buffers.whole;
  gather_stream_.wait_for_current();
  const SideStream::Scope scope(gather_stream_);
  unit.group->all_gather(buffers.whole, buffers.mine);
  unit.gathering->arrived = gather_stream_.point();
}

void FullySharded::release(const Gathered& gathered) {
  copy_in_stream_.wait_for(gathered.copied_out);
  gather_stream_.wait_for(gathered.copied_out);
}

void FullySharded::release_last_gathered() {
  if (!last_gathered_) return;
  release(*last_gathered_);
  last_gathered_.reset();
}

/// The memory of the whole parameter, [ranks, elements of a part].
at::Tensor FullySharded::place_of(const Parameter& parameter, int64_t ranks) const {
  const at::Tensor& value = parameter.value;
  const int64_t elements = parameter.part.numel();
  give_memory(value, elements * ranks * value.element_size());
  observer().memory_lasts(value, {MemoryCategory::kParameter, kModule, parameter.name});
  return memory_as(value, {ranks, elements});
}

/// Of one rank each part is cast and then copied (wait_for_unshard in
/// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
void FullySharded::finish_gathering(Unit& unit, bool in_forward) {
  if (!unit.gathering) return;
  const auto direction = once_in_step();
  const at::NoGradGuard no_grad;
  const ModuleScope module(observer(), kModule);
  if (in_forward) release_last_gathered();
  gather_stream_.current_waits_for(unit.gathering->arrived);
  const std::vector<at::Tensor> parts = parts_of(unit.parameters);
  const int64_t ranks = group_size(unit.group);
  if (ranks == 1) {
    at::Tensor input;  // a variable of the loop, which holds the last one
    for (std::size_t i = 0; i < parts.size(); ++i) {
      input = parts[i].to(unit.parameters[i]->value.scalar_type());
      place_of(*unit.parameters[i], ranks).copy_(input.view({ranks, -1}));
    }
  } else {
    std::vector<at::Tensor> places;
    for (Parameter* parameter : unit.parameters) places.push_back(place_of(*parameter, ranks));
    const at::Tensor whole = unit.gathering->whole.view({ranks, -1});
    at::split_with_sizes_copy_out(places, whole, sizes_of(parts), 1);
  }
  unit.is_whole = true;
  unit.gathering->copied_out = current_point(options_.device, &observer());
  // In forward it stays until the next copy, so that this one runs beside the next all-gather.
  std::optional<Gathered> gathered = std::exchange(unit.gathering, std::nullopt);
  if (in_forward)
    last_gathered_ = std::move(gathered);
  else
    release(*gathered);
}

void FullySharded::free_parameters(Unit& unit) {
  if (!unit.is_whole) return;
  for (const Parameter* parameter : unit.parameters) take_memory(parameter->value);
  unit.is_whole = false;
}

at::Tensor FullySharded::run(int64_t number, const at::Tensor& input, const Body& body) {
  const auto position = static_cast<std::size_t>(number - first_unit_);
  Unit& unit = units_.at(position);
  // The outermost unit that is recomputed begins a forward, and ends it (_root_pre_forward in
  // _fsdp_state.py): that of the experts, too, where the checkpoint lies inside of their layer's.
  const bool is_recomputed = is_in_backward() && running_ == 0;
  if (forward_order_.empty() || is_recomputed) {  // what the optimizer wrote is read from here on
    copy_in_stream_.wait_for_current();
    gather_stream_.wait_for_current();
  }
  finish_gathering_chunk();
  start_gathering(unit);
  finish_gathering(unit, /*in_forward=*/true);
  for (const std::size_t ahead : unit.ahead_in_forward) start_gathering(units_[ahead]);
  begin_python("FSDP::pre_forward");
  // Where the first unit is the last one, too, its backward is over at the end: finish_backward().
  const bool ends_here = input.requires_grad() && !(is_loop_ && position == last_unit_);
  ++running_;
  at::Tensor output =
      body(ends_here ? UnitBackwardFunction::apply(input, UnitOf{this, position}) : input);
  --running_;
  if (!is_in_backward()) {
    const bool goes_on = is_loop_ && position == last_unit_ && forward_order_.empty();
    if (!unit.stays_gathered && !goes_on) free_parameters(unit);
    // Inside of a checkpoint no output has a gradient yet.
    const bool has_backward = output.requires_grad() || !c10::GradMode::is_enabled();
    if (has_backward) unit.positions.push_back(forward_order_.size());
    forward_order_.push_back(position);
  }
  if (is_recomputed) release_last_gathered();
  if (output.requires_grad()) {  // not in the forward of a segment that is recomputed
    output.register_hook([this, position](const at::Tensor&) { before_backward(position); });
  }
  if (position == last_unit_ && (!is_loop_ || forward_order_.size() > 1)) release_last_gathered();
  return output;
}

void FullySharded::before_backward(std::size_t number) {
  Unit& unit = units_.at(number);
  start_gathering(unit);
  finish_gathering(unit, /*in_forward=*/false);
  unit.in_backward = true;
  const std::size_t position = unit.positions.back();
  unit.positions.pop_back();
  std::vector<std::size_t> ahead = unit.ahead_in_backward;
  if (ahead.empty() && position > 0) ahead = {forward_order_.at(position - 1)};
  for (const std::size_t other : ahead) start_gathering(units_.at(other));
  begin_python("FSDP::pre_backward");
}

void FullySharded::keep_whole_gradients(Unit& unit) {
  if (options_.in_pipeline) return sum_whole_gradients(unit);
  free_parameters(unit);
  for (const Parameter* parameter : unit.trained) {
    const at::Tensor& gradient = parameter->value.grad();
    observer().memory_lasts(gradient, {MemoryCategory::kGradient, kModule, parameter->name});
  }
}

std::vector<at::Tensor> FullySharded::take_gradients(Unit& unit) {
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> sums = std::exchange(unit.sums, {});
  sums.resize(unit.trained.size());
  for (std::size_t i = 0; i < unit.trained.size(); ++i) {
    Parameter* parameter = unit.trained[i];
    at::Tensor gradient = sums[i].defined() ? std::exchange(sums[i], at::Tensor())
                                            : std::exchange(parameter->value.mutable_grad(), {});
    if (parameter->sequence_partial && options_.tensor_group) {
      options_.tensor_group->all_reduce(gradient);
    }
    gradients.push_back(in_own_memory(gradient));
  }
  return gradients;
}

void FullySharded::after_backward(std::size_t number) {
  const at::NoGradGuard no_grad;
  const ModuleScope module(observer(), kModule);
  Unit& unit = units_.at(number);
  unit.in_backward = false;
  if (!reduces_) return keep_whole_gradients(unit);
  std::vector<at::Tensor> gradients = take_gradients(unit);
  free_parameters(unit);
  if (!gradients.empty()) reduce(unit, std::move(gradients));
}

void FullySharded::reduce(Unit& unit, std::vector<at::Tensor> gradients) {
  reduce_stream_.current_waits_for(scattered_);
  reducing_ = at::Tensor();
  const int64_t elements = sum_of(sizes_of(parts_of(unit.trained)));
  const at::TensorOptions options =
      unit.trained.front()->part.options().dtype(options_.reduce_type);
  const int64_t ranks = group_size(unit.group);
  reducing_ = at::empty({ranks * elements}, options);
  at::Tensor rows = reducing_.view({ranks, elements});
  at::_chunk_cat_out(rows, gradients, 0, ranks);
  // A variable of foreach_reduce()'s loop holds the last one until it returns.
  const at::Tensor held = unit.group ? gradients.back() : at::Tensor();
  gradients.clear();
  reduce_stream_.wait_for_current();
  const SideStream::Scope scope(reduce_stream_);
  at::Tensor reduced = at::empty({elements}, options);
  // The tokens of the expert ranks are already in the gradients of their experts.
  const auto tokens_of =
      static_cast<double>(group_size(options_.data_group) * group_size(options_.replica_group));
  if (unit.group) {
    unit.group->reduce_scatter(reduced, reducing_);
    reduced.mul_(1.0 / tokens_of);  // NCCL's own kernel averages
  } else {
    reduced.copy_(options_.data_group ? reducing_.div(tokens_of) : reducing_);
  }
  if (!options_.replica_group) add_gradients(unit, reduced.to(options_.part_type));
  scattered_ = reduce_stream_.point();
  if (!options_.replica_group) return;
  replica_stream_->wait_for(scattered_);
  const SideStream::Scope replica_scope(*replica_stream_);
  options_.replica_group->all_reduce(reduced);
  add_gradients(unit, reduced.to(options_.part_type));
  unit.summing = reduced;
}

/// Each parameter's gradient by itself (the end of foreach_reduce in _fsdp_collectives.py).
void FullySharded::add_gradients(const Unit& unit, const at::Tensor& reduced) {
  bool lasts = false;
  int64_t offset = 0;
  for (const Parameter* leaf : unit.trained) {
    const int64_t elements = leaf->part.numel();
    const at::Tensor part = reduced.narrow(0, offset, elements);
    offset += elements;
    at::Tensor& sum = gradients_[leaf->leaf_of != nullptr ? leaf->leaf_of : leaf];
    if (sum.defined()) {
      sum.add_(part);
    } else {
      sum = part;
      lasts = true;
    }
  }
  if (lasts) observer().memory_lasts(reduced, {MemoryCategory::kGradient, kModule, ""});
}

void FullySharded::begin_iteration() {
  reduces_ = !options_.accumulates_whole_gradients && !options_.in_pipeline;
  gradients_.clear();
}

void FullySharded::finish_backward() {
  bool all_done = true;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (units_[unit].in_backward) after_backward(unit);
    all_done &= units_[unit].positions.empty();
  }
  if (all_done) forward_order_.clear();
  finish_reductions();
}

void FullySharded::finish_reductions() {
  reduce_stream_.current_waits_for(scattered_);
  if (replica_stream_) replica_stream_->join();
  for (Unit& unit : units_) unit.summing = at::Tensor();
  reducing_ = at::Tensor();
}

std::vector<OwnedPiece> FullySharded::owned_pieces() const {
  std::vector<OwnedPiece> pieces;
  for (const Unit& unit : units_) {
    for (const Parameter* parameter : unit.trained) {
      if (parameter->leaf_of != nullptr) continue;
      const auto [begin, end] = parameter->owned_range();
      OwnedPiece piece{.parameter = parameter, .begin = begin, .end = end};
      piece.weights = parameter->part.narrow(0, 0, end - begin);
      const auto gradient = gradients_.find(parameter);
      if (gradient != gradients_.end()) {
        piece.gradients = gradient->second.narrow(0, 0, end - begin);
      }
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

int64_t FullySharded::parameter_padding() const {
  int64_t elements = 0;
  for (const Unit& unit : units_) {
    for (const Parameter* parameter : unit.parameters) {
      if (parameter->leaf_of != nullptr) continue;
      const auto [begin, end] = parameter->owned_range();
      elements += parameter->part.numel() - (end - begin);
    }
  }
  return elements;
}

}  // namespace models
