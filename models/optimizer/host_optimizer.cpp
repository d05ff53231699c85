#include "models/optimizer/host_optimizer.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <numeric>

#include "models/shard/unbacked_tensor.h"

namespace models {

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.numel() * tensor.element_size();
  return bytes;
}

namespace {

/// Megatron-LM's groups: parameters without weight decay come last (_get_param_groups).
bool has_weight_decay(const OptimizerPiece& piece) { return piece.owner->value.dim() > 1; }

/// Beside tensors of `device`; only a GPU's can be page-locked.
at::Tensor host_tensor(int64_t elements,
                       c10::ScalarType type,
                       const at::Device& device,
                       bool page_locked,
                       const OffloadSettings& settings) {
  const bool pinned = page_locked && device.is_cuda();
  const auto options = at::TensorOptions().dtype(type).pinned_memory(pinned);
  if (!pinned && !settings.values) return unbacked_tensor({elements}, options);
  return at::empty({elements}, options);
}

/// What crosses the host's link is no kernel of the device.
void copy_across(const at::Tensor& to, const at::Tensor& from) {
  const at::DisableRecordFunctionGuard not_recorded;
  to.copy_(from, /*non_blocking=*/true);
}

}  // namespace

PieceDivision divide_pieces(const std::vector<OptimizerPiece>& pieces, double fraction) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t piece) {
    return has_weight_decay(pieces[piece]);
  });
  int64_t all = 0;
  for (const OptimizerPiece& piece : pieces) all += piece.weights.numel();
  const double threshold = fraction * static_cast<double>(all);
  PieceDivision division;
  int64_t elements = 0;
  for (const std::size_t piece : order) {
    const bool is_hosts = static_cast<double>(elements) < threshold;
    (is_hosts ? division.host : division.device).push_back(piece);
    elements += pieces[piece].weights.numel();
  }
  return division;
}

at::Tensor master_weights_on_host(const at::Tensor& weights, const OffloadSettings& settings) {
  const auto on_host = [&](c10::ScalarType type, bool page_locked) {
    return host_tensor(weights.numel(), type, weights.device(), page_locked, settings);
  };
  const at::Tensor copied = weights.clone();
  const at::Tensor staged = on_host(weights.scalar_type(), /*page_locked=*/true);
  at::Tensor master_weights = on_host(at::kFloat, settings.pin_parameters);
  if (settings.values) {
    const at::DisableRecordFunctionGuard not_recorded;
    staged.copy_(copied);
    master_weights.copy_(staged);
  }
  return master_weights;
}

std::vector<at::Tensor> copies_of_whole_parameters(const DataParallel& data_parallel,
                                                   const OffloadSettings& settings) {
  std::vector<OptimizerPiece> whole;
  for (const OwnedPiece& owned : data_parallel.owned_pieces()) {
    whole.push_back({owned.parameter, owned.parameter->value.detach().view(-1)});
  }
  std::reverse(whole.begin(), whole.end());  // as the model has them; buckets turn them around
  const PieceDivision division = divide_pieces(whole, settings.fraction);
  std::vector<at::Tensor> copies;
  for (const std::size_t piece : division.host) {
    copies.push_back(master_weights_on_host(whole[piece].weights, settings));
  }
  for (const std::size_t piece : division.device) {
    copies.push_back(whole[piece].weights.clone().to(at::kFloat));
  }
  return copies;
}

HostOptimizer::HostOptimizer(const std::vector<OptimizerPiece>& pieces,
                             const OptimizerSettings& settings)
    : settings_(settings),
      to_host_(settings.offload->overlap && !pieces.empty() ? pieces.front().weights.device()
                                                            : at::Device(at::kCPU)),
      from_host_(to_host_.stream() ? to_host_.stream()->device() : at::Device(at::kCPU)) {
  for (const OptimizerPiece& piece : pieces) {
    model_weights_.push_back(piece.weights);
    master_weights_.push_back(master_weights_on_host(piece.weights, *settings.offload));
  }
}

at::Device HostOptimizer::device() const { return model_weights_.front().device(); }

void HostOptimizer::take_gradients(const std::vector<at::Tensor>& gradients) {
  to_host_.wait_for_current();
  const SideStream::Scope scope(to_host_);
  arrived_.clear();
  for (std::size_t piece = 0; piece < gradients.size(); ++piece) {
    if (gradients_.size() == piece) {
      gradients_.push_back(host_tensor(gradients[piece].numel(),
                                       at::kFloat,
                                       device(),
                                       settings_.offload->pin_gradients,
                                       *settings_.offload));
    }
    if (settings_.offload->values) copy_across(gradients_[piece], gradients[piece]);
    arrived_.push_back(current_point(device()));
  }
}

void HostOptimizer::make_state() {
  const bool values = settings_.offload->values;
  const auto zeros = [&](at::IntArrayRef shape) {
    return values ? at::zeros(shape, at::kFloat) : unbacked_tensor(shape, at::kFloat);
  };
  for (const at::Tensor& weights : master_weights_) {
    state_.first_moments.push_back(zeros(weights.sizes()));
    state_.second_moments.push_back(zeros(weights.sizes()));
    state_.steps.push_back(zeros({}));
  }
}

void HostOptimizer::update(std::size_t begin, std::size_t end) {
  const at::DisableRecordFunctionGuard not_recorded;  // the host's work, not the device's
  if (const auto& arrived = arrived_[end - 1].event) arrived->synchronize();
  const auto part = [&](const std::vector<at::Tensor>& tensors) {
    return std::vector<at::Tensor>(tensors.begin() + static_cast<std::ptrdiff_t>(begin),
                                   tensors.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const AdamwState state{
      part(state_.first_moments), part(state_.second_moments), part(state_.steps)};
  for (const at::Tensor& step : state.steps) step.add_(1);
  step_adamw(part(master_weights_), part(gradients_), state, settings_);
}

void HostOptimizer::copy_back(std::size_t piece) {
  const SideStream::Scope scope(from_host_);
  const at::Tensor& weights = model_weights_[piece];
  const at::Tensor came = at::empty_like(weights, weights.options().dtype(at::kFloat));
  if (settings_.offload->values) copy_across(came, master_weights_[piece]);
  weights.copy_(came);
}

void HostOptimizer::step() {
  if (state_.steps.empty()) make_state();
  from_host_.wait_for_current();
  const std::size_t pieces = master_weights_.size();
  const std::size_t at_once = settings_.offload->overlap ? 1 : pieces;
  for (std::size_t begin = 0; begin < pieces; begin += at_once) {
    if (settings_.offload->values) update(begin, begin + at_once);
    for (std::size_t piece = begin; piece < begin + at_once; ++piece) copy_back(piece);
  }
  from_host_.join();
}

estimator::HostMemoryRecord HostOptimizer::memory() const {
  estimator::HostMemoryRecord memory{
      .master_weight_bytes = bytes_of(master_weights_),
      .optimizer_state_bytes = bytes_of(state_.first_moments) + bytes_of(state_.second_moments),
      .gradient_bytes = bytes_of(gradients_)};
  for (const at::Tensor& weights : master_weights_) memory.pieces.push_back(weights.numel());
  const bool can_lock = !model_weights_.empty() && device().is_cuda();
  if (can_lock) {
    memory.page_locked_bytes = at::getHostAllocator(at::kCUDA)->get_stats().allocated_bytes.current;
  }
  const OffloadSettings& offload = *settings_.offload;
  memory.total_bytes = memory.page_locked_bytes + memory.optimizer_state_bytes +
                       (can_lock && offload.pin_parameters ? 0 : memory.master_weight_bytes) +
                       (can_lock && offload.pin_gradients ? 0 : memory.gradient_bytes);
  return memory;
}

}  // namespace models
