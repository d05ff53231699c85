#include "models/optimizer/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <map>
#include <numeric>
#include <utility>

#include "models/optimizer/muon.h"
#include "models/shard/quantized_parameter.h"

namespace models {

using estimator::MemoryCategory;

namespace {

template <class T>
std::vector<T> select(const std::vector<T>& all, const std::vector<std::size_t>& which) {
  std::vector<T> selected;
  selected.reserve(which.size());
  for (const std::size_t index : which) selected.push_back(all[index]);
  return selected;
}

/// Whether ranks quantize their parts of the parameter before these are gathered.
bool quantizes_parts(const Parameter& parameter) {
  return parameter.quantized && !parameter.quantized->products.gathers_before_quantizing();
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(DataParallel& data_parallel,
                                           const OptimizerSettings& settings,
                                           ProcessGroups groups)
    : data_parallel_(data_parallel), settings_(settings), groups_(std::move(groups)) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> whole;
  if (settings.offload) whole = copies_of_whole_parameters(data_parallel, *settings.offload);
  add_pieces();
  own_master_weights_ = settings.master_weights && !model_weights_.empty() &&
                        model_weights_.front().scalar_type() != at::kFloat;
  for (std::size_t piece = 0; piece < model_weights_.size(); ++piece) {
    const at::Tensor& weights = model_weights_[piece];
    master_weights_.push_back(own_master_weights_ ? initial_master_weights(piece) : weights);
    if (own_master_weights_) lasts(master_weights_.back(), MemoryCategory::kMasterWeight, piece);
  }
  if (settings.gradients_come_clipped) zero_gradients();
  if (settings.state_at_start) {
    const std::vector<at::Tensor> zeros = zero_gradients();
    make_state();
  }
}

/// Megatron-LM starts from the weights as they were before they were quantized
/// (get_high_precision_init_val), which the host keeps until here.
at::Tensor DistributedOptimizer::initial_master_weights(std::size_t piece) const {
  const at::Tensor& weights = model_weights_[piece];
  const Parameter& owner = *owners_[piece];
  if (quantizes_parts(owner)) {
    const QuantizedParameter& quantized = *owner.quantized;
    return quantized.products.values_of(quantized.held, weights, owner.value.scalar_type())
        .to(at::kFloat);
  }
  // `.clone().float()` in distrib_optimizer.py and optimizer.py of megatron/core/optimizer.
  const bool copies = settings_.copies_before_cast || settings_.offload;
  return (copies ? weights.clone() : weights).to(at::kFloat);
}

void DistributedOptimizer::add_pieces() {
  const std::vector<OptimizerPiece> pieces = data_parallel_.optimizer_pieces();
  if (settings_.offload) {
    PieceDivision division = divide_pieces(pieces, settings_.offload->fraction);
    host_pieces_ = std::move(division.host);
    device_pieces_ = std::move(division.device);
    host_.emplace(select(pieces, host_pieces_), settings_);
  } else {
    device_pieces_.resize(pieces.size());
    std::iota(device_pieces_.begin(), device_pieces_.end(), 0);
  }
  for (const OptimizerPiece& piece : select(pieces, device_pieces_)) {
    const bool is_matrix =
        settings_.kind == estimator::Optimizer::kMuon && models::is_of_muon(*piece.owner);
    (is_matrix ? matrices_ : others_).push_back(owners_.size());
    owners_.push_back(piece.owner);
    model_weights_.push_back(piece.weights);
  }
  divide_into_calls();
}

void DistributedOptimizer::divide_into_calls() {
  std::map<std::size_t, std::vector<std::size_t>> calls;
  if (settings_.calls == UpdateCalls::kFirstChunk) calls = {{0, {}}, {1, {}}};
  for (std::size_t i = 0; i < others_.size(); ++i) {
    const std::size_t has_no_decay = decays(owners_[others_[i]]) ? 0 : 1;
    const std::size_t by_kind[] = {0, has_no_decay, i, step_of(*owners_[others_[i]])};
    calls[by_kind[static_cast<std::size_t>(settings_.calls)]].push_back(i);
  }
  for (auto& [number, places] : calls) calls_.push_back(std::move(places));
}

std::size_t DistributedOptimizer::step_of(const Parameter& parameter) const {
  if (settings_.calls != UpdateCalls::kFirstChunk) return 0;
  const bool is_of_first = parameter.chunk == 0 && !is_apart(parameter);
  return is_of_first ? 0 : 1;
}

std::optional<DirectionScope> DistributedOptimizer::scope_of_step(std::size_t step) const {
  if (settings_.calls != UpdateCalls::kFirstChunk) return std::nullopt;
  return std::optional<DirectionScope>(std::in_place,
                                       data_parallel_.observer(),
                                       estimator::Direction::kOptimizerStep,
                                       estimator::kNoMicroBatch,
                                       static_cast<int64_t>(step));
}

/// DeepSpeed makes them before the first step (initialize_optimizer_states). In 2022 it took a step
/// with them, so that the state lies before all activations.
std::vector<at::Tensor> DistributedOptimizer::zero_gradients() const {
  std::vector<at::Tensor> zeros;
  if (!data_parallel_.has_flat_gradients()) {
    for (const at::Tensor& weights : master_weights_) zeros.push_back(at::zeros_like(weights));
  }
  return zeros;
}

void DistributedOptimizer::lasts(const at::Tensor& tensor,
                                 MemoryCategory category,
                                 std::size_t piece) const {
  data_parallel_.observer().memory_lasts(tensor, {category, "optimizer", owners_[piece]->name});
}

void DistributedOptimizer::add_state(std::vector<at::Tensor>& states,
                                     at::Tensor state,
                                     std::size_t piece) {
  lasts(state, MemoryCategory::kOptimizerState, piece);
  states.push_back(std::move(state));
}

void DistributedOptimizer::make_momenta() {
  for (const std::size_t piece : matrices_) {
    add_state(momenta_, at::zeros_like(master_weights_[piece]), piece);
  }
}

/// TransformerEngine's FusedAdam makes a scale of 1 for each that is in bf16
/// (_initialize_state in transformer_engine/pytorch/optimizers/fused_adam.py).
void DistributedOptimizer::make_moment(std::vector<at::Tensor>& moments, std::size_t piece) {
  const at::Tensor& weights = master_weights_[piece];
  if (!settings_.narrow_moments) return add_state(moments, at::zeros_like(weights), piece);
  add_state(moments, at::zeros_like(weights, at::kBFloat16), piece);
  add_state(scales_, at::ones({1}, weights.options()), piece);
}

void DistributedOptimizer::make_state() {
  for (const std::size_t piece : others_) {
    const at::Tensor& weights = master_weights_[piece];
    make_moment(state_.first_moments, piece);
    if (settings_.kind == estimator::Optimizer::kSgd) continue;
    make_moment(state_.second_moments, piece);
    if (settings_.shared_step && !state_.steps.empty()) {
      state_.steps.push_back(state_.steps.front());
    } else {
      add_state(state_.steps, at::zeros({}, weights.options().dtype(at::kFloat)), piece);
    }
  }
}

/// The work that frameworks do by default between backward and update: with a loss scale (fp16)
/// the gradients are divided by it and searched for infinities; then their norm is computed, and
/// they are multiplied so that it is at most the limit. Here both factors are 1, which leaves the
/// gradients as they are: a loss that is not scaled, and a limit that no norm reaches. So the
/// ranks' sum of the norms is left out where it is one number.
void DistributedOptimizer::clip(const std::vector<at::Tensor>& gradients) const {
  if (gradients.empty()) return;
  if (settings_.scales_loss) {
    at::Tensor found = at::zeros({1}, gradients.front().options().dtype(at::kFloat));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, at::ones_like(found));
  }
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2);
  if (!settings_.clips_on_device) return at::_foreach_mul_(gradients, 1);
  constexpr double kLimit = 1e30;
  const at::Tensor norm = at::linalg_vector_norm(summed_norms(norms), 2);
  at::_foreach_mul_(gradients, (kLimit / (norm + 1e-6)).clamp_max(1));
}

/// Each parameter's norm is summed over the ranks that have parts of it, those of expert ranks
/// apart (_NormPartial in torch/distributed/tensor/_ops/_math_ops.py of torch 2.11,
/// _clip_grad_norm_with_ep in torchtitan/distributed/utils.py of v0.2.2). Experts of one replica
/// are divided over the ranks of TorchTitan's loss mesh, which are then all data ranks, so that
/// DTensor sums over both dimensions at once (_get_flattened_mesh_by_layout in _redistribute.py).
at::Tensor DistributedOptimizer::summed_norms(const std::vector<at::Tensor>& norms) const {
  if (!settings_.sums_norms) return at::stack(norms);
  std::vector<at::Tensor> own, of_experts;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const bool apart = groups_.expert && owners_[i]->expert;
    (apart ? of_experts : own).push_back(norms[i]);
  }
  std::vector<at::Tensor> summed;
  using Group = std::shared_ptr<Communicator>;
  const auto add = [&](const std::vector<at::Tensor>& parts, std::initializer_list<Group> groups) {
    if (parts.empty()) return;
    at::Tensor squares = at::stack(parts).pow(2);
    for (const Group& group : groups) {
      if (group) group->start_all_reduce(squares).wait();
    }
    summed.push_back(squares.pow(0.5));
  };
  if (groups_.instances) {
    add(of_experts, {groups_.expert_data, groups_.expert});
  } else {
    add(of_experts, {groups_.data});
  }
  add(own, {groups_.data, groups_.tensor});
  return at::cat(summed);
}

void DistributedOptimizer::update(const std::function<void()>& after_clipping) {
  if (master_weights_.empty() && !host_) return;
  const std::vector<at::Tensor> all =
      data_parallel_.step_gradients(host_ ? at::kFloat : master_weights_.front().scalar_type());
  if (!settings_.gradients_come_clipped) clip(all);
  if (after_clipping) after_clipping();
  if (host_) host_->take_gradients(select(all, host_pieces_));
  if (!master_weights_.empty()) update_device(select(all, device_pieces_));
  if (host_) host_->step();
}

void DistributedOptimizer::update_device(const std::vector<at::Tensor>& gradients) {
  update_matrices(gradients);
  if (others_.empty()) return;
  if (state_.first_moments.empty()) make_state();
  settings_.kind == estimator::Optimizer::kSgd ? step_sgd(select(gradients, others_))
                                               : step_adamw_of(select(gradients, others_));
}

void DistributedOptimizer::update_matrices(const std::vector<at::Tensor>& gradients) {
  if (momenta_.empty()) make_momenta();
  std::vector<MuonMatrix> matrices;
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const std::size_t piece = matrices_[i];
    matrices.push_back({.parameter = owners_[piece],
                        .weights = master_weights_[piece],
                        .gradient = gradients[piece],
                        .momentum = momenta_[i]});
  }
  step_muon(matrices, settings_, groups_);
}

void DistributedOptimizer::step_sgd(const std::vector<at::Tensor>& gradients) {
  at::_fused_sgd_(select(master_weights_, others_),
                  gradients,
                  state_.first_moments,
                  settings_.weight_decay,
                  settings_.momentum,
                  settings_.learning_rate,
                  /*dampening=*/0,
                  /*nesterov=*/false,
                  /*maximize=*/false,
                  first_step_);
}

void DistributedOptimizer::step_adamw_of(const std::vector<at::Tensor>& gradients) {
  const std::vector<at::Tensor> weights = select(master_weights_, others_);
  if (settings_.shared_step) state_.steps.front().add_(1);
  for (std::size_t number = 0; number < calls_.size(); ++number) {
    const std::vector<std::size_t>& call = calls_[number];
    if (call.empty()) continue;
    const std::optional<DirectionScope> step = scope_of_step(number);
    const AdamwState state{.first_moments = select(state_.first_moments, call),
                           .second_moments = select(state_.second_moments, call),
                           .steps = select(state_.steps, call)};
    if (!settings_.shared_step) at::_foreach_add_(state.steps, 1);
    step_adamw(select(weights, call), select(gradients, call), state, settings_);
  }
}

/// Experts that lie apart have an optimizer of their own.
bool DistributedOptimizer::is_apart(const Parameter& parameter) const {
  return settings_.experts_apart && parameter.expert;
}

void DistributedOptimizer::copy_to_model(bool of_experts) {
  if (!own_master_weights_) return;
  const std::size_t steps = settings_.calls == UpdateCalls::kFirstChunk ? 2 : 1;
  for (std::size_t number = 0; number < steps; ++number) {
    const std::optional<DirectionScope> step = scope_of_step(number);
    copy_quantized(of_experts, number);
    for (std::size_t i = 0; i < master_weights_.size(); ++i) {
      const Parameter& owner = *owners_[i];
      const bool is_copied = is_apart(owner) == of_experts && step_of(owner) == number;
      if (is_copied && !quantizes_parts(owner)) model_weights_[i].copy_(master_weights_[i]);
    }
  }
}

/// The ranks agree on the scale of every parameter, also of those that other ranks update.
void DistributedOptimizer::copy_quantized(bool of_experts, std::size_t step) {
  const auto is_copied = [&](const Parameter& parameter) {
    return is_apart(parameter) == of_experts && step_of(parameter) == step &&
           quantizes_parts(parameter);
  };
  std::vector<const Parameter*> parameters;
  for (const OwnedPiece& piece : data_parallel_.owned_pieces()) {
    if (is_copied(*piece.parameter)) parameters.push_back(piece.parameter);
  }
  std::vector<NewWeights> parts;
  for (std::size_t i = 0; i < master_weights_.size(); ++i) {
    if (is_copied(*owners_[i]))
      parts.push_back({owners_[i], model_weights_[i], master_weights_[i]});
  }
  quantize_parts(parameters, parts, of_experts ? groups_.expert_data : groups_.data);
}

void DistributedOptimizer::step(const std::function<void()>& after_clipping) {
  const c10::NoGradGuard no_grad;
  const bool makes_state = matrices_.empty() && !settings_.gradients_come_clipped;
  if (makes_state && state_.first_moments.empty()) make_state();
  update(after_clipping);
  first_step_ = false;
  for (const bool of_experts : {false, true}) {
    copy_to_model(of_experts);
    const bool is_last = of_experts || data_parallel_.gathers_after_each_optimizer();
    if (is_last) data_parallel_.gather_parameters();
  }
}

int64_t DistributedOptimizer::master_weight_bytes() const {
  return own_master_weights_ ? bytes_of(master_weights_) : 0;
}

int64_t DistributedOptimizer::state_bytes() const {
  return bytes_of(momenta_) + bytes_of(state_.first_moments) + bytes_of(state_.second_moments);
}

int64_t DistributedOptimizer::step_scalar_bytes() const {
  if (state_.steps.empty()) return 0;
  return bytes_of(scales_) +
         (settings_.shared_step ? state_.steps.front().element_size() : bytes_of(state_.steps));
}

std::optional<estimator::HostMemoryRecord> DistributedOptimizer::host_memory() const {
  return host_ ? std::optional(host_->memory()) : std::nullopt;
}

}  // namespace models
