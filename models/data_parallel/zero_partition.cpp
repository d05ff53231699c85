#include "models/data_parallel/zero_partition.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "estimator/base/units.h"
#include "models/data_parallel/zero_gradients.h"

namespace models {

using estimator::MemoryCategory;

namespace {

/// nccl_start_alignment_factor: 4 bytes of a 16-bit type.
constexpr int64_t kStartAlignment = 2;

at::Tensor part(const at::Tensor& flat, const FlatRange& range) {
  return flat.narrow(0, range.begin, range.end - range.begin);
}

}  // namespace

std::vector<RankSlice> rank_slices(const std::vector<FlatPlace>& places) {
  std::vector<RankSlice> slices;
  for (const auto& [range, partition] : places) {
    for (int64_t begin = range.begin; begin < range.end;) {
      const int64_t rank = begin / partition;
      const int64_t end = std::min(range.end, (rank + 1) * partition);
      if (slices.empty() || slices.back().rank != rank) slices.push_back({.rank = rank});
      slices.back().elements += end - begin;
      begin = end;
    }
  }
  return slices;
}

ZeroPartition::ZeroPartition(const std::vector<ParameterList>& groups, ZeroPartitionOptions options)
    : options_(std::move(options)), reductions_(options_.device, &options_.observer) {
  for (const ParameterList& parameters : groups) add_group(parameters);
}

void ZeroPartition::add_group(const ParameterList& parameters) {
  std::vector<at::Tensor> values;
  int64_t elements = 0;
  for (const Parameter* parameter : parameters) {
    values.push_back(parameter->value);
    elements += parameter->value.numel();
  }
  const int64_t alignment = kStartAlignment * group_size(options_.data_group);
  const at::Tensor flat = joined_through_host(
      values, estimator::round_up(elements, alignment), options_.device_computes);
  observer().memory_lasts(flat, {MemoryCategory::kParameter, "parameter_buffer", ""});
  int64_t begin = 0;
  for (Parameter* parameter : parameters) {
    at::Tensor& value = parameter->value;
    const FlatRange place{begin, begin + value.numel()};
    value.set_data(part(flat, place).view(value.sizes()));
    const Slot& slot =
        slots_.emplace_back(Slot{.parameter = parameter, .group = groups_.size(), .place = place});
    when_gradient_is_there(*parameter, [this, &slot] { gradient_is_there(slot); });
    begin = place.end;
  }
  groups_.push_back({.first = parameters.front(), .flat = flat, .elements = elements});
}

FlatRange ZeroPartition::mine(const Group& group) const {
  const int64_t elements = group.flat.numel() / group_size(options_.data_group);
  const int64_t index = options_.data_group ? options_.data_group->index() : 0;
  return {index * elements, (index + 1) * elements};
}

FlatRange ZeroPartition::own_part(const Slot& slot) const {
  const FlatRange partition = mine(groups_[slot.group]);
  const int64_t begin = std::clamp(partition.begin, slot.place.begin, slot.place.end);
  return {begin, std::clamp(partition.end, begin, slot.place.end)};
}

bool ZeroPartition::is_mine(const Slot& slot) const {
  const FlatRange own = own_part(slot);
  return own.begin < own.end;
}

void ZeroPartition::gradient_is_there(const Slot& slot) {
  make_buffers();
  if (options_.stage == 2 || (options_.overlap && is_last_)) take(slot);
}

void ZeroPartition::make_buffers() {
  const std::size_t wanted = options_.overlap ? 2 : 1;
  while (bucket_.buffers.size() < wanted) {
    bucket_.buffers.push_back(at::empty({options_.bucket_elements}, options()));
    observer().memory_lasts(bucket_.buffers.back(),
                            {MemoryCategory::kCommunication, "reduce_bucket", ""});
  }
}

/// reduce_independent_p_g_buckets_and_remove_grads: a gradient that is larger than the bucket is
/// reduced where it lies.
void ZeroPartition::take(const Slot& slot) {
  at::Tensor& gradient = slot.parameter->value.mutable_grad();
  const int64_t elements = gradient.numel();
  if (bucket_.elements + elements > options_.bucket_elements) {
    reduce_bucket();
    switch_buffers();
  }
  if (elements <= options_.bucket_elements) {
    const at::Tensor place = bucket_.buffers[bucket_.filling].narrow(0, bucket_.elements, elements);
    place.copy_(gradient.view(-1));
    gradient = place.view(gradient.sizes());
  }
  bucket_.elements += elements;
  bucket_.slots.push_back(&slot);
}

void ZeroPartition::switch_buffers() {
  if (!options_.overlap) return;
  reductions_.wait_for_current();
  reductions_.join();
  bucket_.filling = 1 - bucket_.filling;
}

void ZeroPartition::reduce_bucket() {
  if (bucket_.slots.empty()) return;
  const ModuleScope module(observer(), kZeroModule);
  const bool lies_outside = bucket_.elements > options_.bucket_elements;
  const at::Tensor gradients =
      lies_outside ? bucket_.slots.front()->parameter->value.grad().view(-1)
                   : bucket_.buffers[bucket_.filling].narrow(0, 0, bucket_.elements);
  std::optional<SideStream::Scope> beside;
  if (options_.overlap) {
    reductions_.wait_for_current();
    reductions_.join();
    beside.emplace(reductions_);
  }
  average(gradients);
  for (const Slot* slot : bucket_.slots) {
    if (is_mine(*slot)) {
      keep(*slot);
    } else if (options_.stage == 2) {
      slot->parameter->value.mutable_grad().reset();
    }
  }
  bucket_.slots.clear();
  bucket_.elements = 0;
}

/// average_tensor and allreduce_and_scatter: slices are sent together until they are more than a
/// bucket.
void ZeroPartition::average(const at::Tensor& gradients) {
  gradients.div_(group_size(options_.data_group));
  if (!options_.data_group) return;
  std::vector<FlatPlace> places;
  for (const Slot* slot : bucket_.slots) {
    const FlatRange partition = mine(groups_[slot->group]);
    places.push_back({slot->place, partition.end - partition.begin});
  }
  std::vector<RankSlice> together;
  int64_t begin = 0, elements = 0;
  for (const RankSlice& slice : rank_slices(places)) {
    together.push_back(slice);
    elements += slice.elements;
    if (elements <= options_.bucket_elements) continue;
    sum_over_ranks(gradients.narrow(0, begin, elements), std::exchange(together, {}));
    begin += std::exchange(elements, 0);
  }
  if (!together.empty()) sum_over_ranks(gradients.narrow(0, begin, elements), together);
}

/// allreduce_and_copy_with_multiple_ranks: the slices are copied into one tensor, which is
/// all-reduced, and each rank copies back those that are its own.
void ZeroPartition::sum_over_ranks(const at::Tensor& gradients,
                                   const std::vector<RankSlice>& slices) {
  std::vector<int64_t> sizes;
  sizes.reserve(slices.size());
  for (const RankSlice& slice : slices) sizes.push_back(slice.elements);
  const std::vector<at::Tensor> parts = gradients.split_with_sizes(sizes);
  const at::Tensor sent = joined(parts);
  options_.data_group->all_reduce(sent);
  const std::vector<at::Tensor> reduced = sent.split_with_sizes(sizes);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].rank == options_.data_group->index()) parts[i].copy_(reduced[i]);
  }
}

/// copy_grads_in_partition: the buffer will be written again.
void ZeroPartition::keep(const Slot& slot) {
  if (!kept_.defined()) {
    kept_ = at::empty({kept_gradients()}, options());
    observer().memory_lasts(kept_, {MemoryCategory::kGradient, kZeroModule, ""});
    kept_elements_ = 0;
  }
  at::Tensor& gradient = slot.parameter->value.mutable_grad();
  const at::Tensor place = kept_.narrow(0, kept_elements_, gradient.numel());
  place.copy_(gradient.view(-1));
  gradient = place.view(gradient.sizes());
  kept_elements_ += gradient.numel();
}

int64_t ZeroPartition::kept_gradients() const {
  int64_t elements = 0;
  for (const Slot& slot : slots_) elements += is_mine(slot) ? slot.place.end - slot.place.begin : 0;
  return elements;
}

std::optional<int64_t> ZeroPartition::gradient_elements() const {
  return options_.stage == 2 ? std::optional(kept_gradients()) : std::nullopt;
}

void ZeroPartition::finish_backward() {
  if (options_.stage == 2) end_reduction();
}

/// reduce_gradients: without overlap, stage 1 takes the gradients in the order of the parameters.
void ZeroPartition::finish_reduction() {
  if (options_.stage == 2) return;
  const DirectionScope direction(observer(), estimator::Direction::kReduceGradients);
  const c10::NoGradGuard no_grad;
  if (!options_.overlap) {
    for (const Slot& slot : slots_) take(slot);
  }
  end_reduction();
}

/// independent_gradient_partition_epilogue
void ZeroPartition::end_reduction() {
  const c10::NoGradGuard no_grad;
  reduce_bucket();
  if (options_.overlap) reductions_.join();
  std::size_t sum = 0;
  const bool adds = !sums_.empty();
  for (const Slot& slot : slots_) {
    at::Tensor& gradient = slot.parameter->value.mutable_grad();
    if (is_mine(slot)) {
      adds ? sums_[sum++].add_(gradient) : sums_.emplace_back(gradient);
    }
    gradient.reset();
  }
  bucket_ = Bucket();
  kept_ = at::Tensor();
}

void ZeroPartition::gather_parameters() {
  const DirectionScope direction(observer(), estimator::Direction::kOptimizerStep);
  for (const Group& group : groups_) {
    if (options_.data_group) {
      options_.data_group->all_gather(group.flat, part(group.flat, mine(group)));
    }
  }
  norm_.item();
}

std::vector<std::vector<at::Tensor>> ZeroPartition::own_gradients() const {
  std::vector<std::vector<at::Tensor>> gradients(groups_.size());
  const std::vector<OwnedPiece> pieces = owned_pieces();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (is_mine(slots_[i])) gradients[slots_[i].group].push_back(pieces[i].gradients);
  }
  return gradients;
}

std::vector<OwnedPiece> ZeroPartition::owned_pieces() const {
  std::vector<OwnedPiece> pieces;
  std::size_t sum = 0;
  for (const Slot& slot : slots_) {
    const FlatRange own = own_part(slot);
    OwnedPiece piece{.parameter = slot.parameter,
                     .begin = own.begin - slot.place.begin,
                     .end = own.end - slot.place.begin,
                     .weights = part(groups_[slot.group].flat, own)};
    if (!is_mine(slot)) {
      piece.gradients = piece.weights;  // none, of no elements
    } else if (!sums_.empty()) {
      piece.gradients = part(sums_[sum++].view(-1), {piece.begin, piece.end});
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<OptimizerPiece> ZeroPartition::optimizer_pieces() const {
  std::vector<OptimizerPiece> pieces;
  for (const Group& group : groups_) pieces.push_back({group.first, part(group.flat, mine(group))});
  return pieces;
}

/// get_flat_partition(): the last rank's part is padded with zeros.
at::Tensor ZeroPartition::flat_gradient(const Group& group,
                                        std::vector<at::Tensor> gradients) const {
  const FlatRange partition = mine(group);
  int64_t missing = partition.end - partition.begin;
  for (const at::Tensor& gradient : gradients) missing -= gradient.numel();
  if (missing > 0) gradients.push_back(at::zeros({missing}, options()));
  return joined(gradients);
}

std::vector<at::Tensor> ZeroPartition::step_gradients(c10::ScalarType type) {
  std::vector<std::vector<at::Tensor>> gradients = own_gradients();
  if (options_.checks_overflow) {
    std::vector<at::Tensor> found;
    for (const std::vector<at::Tensor>& of_group : gradients) {
      for (const at::Tensor& gradient : of_group) found.push_back(overflow_of_copy(gradient));
    }
    agree_on_overflow(found, options_.data_group);
  }
  sums_.clear();
  std::vector<at::Tensor> norms;
  norms.reserve(gradients.size());
  for (const std::vector<at::Tensor>& of_group : gradients) {
    norms.push_back(norm_of_ranks(of_group, options_.data_group, options().dtype(at::kFloat)));
  }
  norm_ = norm_of_groups(norms);
  std::vector<at::Tensor> flat;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    flat.push_back(flat_gradient(groups_[i], std::exchange(gradients[i], {})).to(type));
    flat.back().mul_(clipping_factor(norm_));
  }
  return flat;
}

int64_t ZeroPartition::parameter_padding() const {
  int64_t padding = 0;
  for (const Group& group : groups_) padding += group.flat.numel() - group.elements;
  return padding;
}

}  // namespace models
