#include "models/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

namespace models {

using estimator::MemoryCategory;

namespace {

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.numel() * tensor.element_size();
  return bytes;
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(DataParallel& data_parallel,
                                           const OptimizerSettings& settings)
    : data_parallel_(data_parallel), settings_(settings) {
  const c10::NoGradGuard no_grad;
  for (OptimizerPiece& piece : data_parallel.optimizer_pieces()) {
    owners_.push_back(piece.owner);
    model_weights_.push_back(std::move(piece.weights));
  }
  own_main_weights_ = settings.main_weights && !model_weights_.empty() &&
                      model_weights_.front().scalar_type() != at::kFloat;
  for (std::size_t piece = 0; piece < model_weights_.size(); ++piece) {
    const at::Tensor& weights = model_weights_[piece];
    main_weights_.push_back(own_main_weights_ ? weights.to(at::kFloat) : weights);
    if (own_main_weights_) lasts(main_weights_.back(), MemoryCategory::kMainWeight, piece);
  }
  if (settings.state_at_start) make_state_with_zero_gradients();
}

/// DeepSpeed takes a first step with zeros, so that the state lies before all activations
/// (initialize_optimizer_states).
void DistributedOptimizer::make_state_with_zero_gradients() {
  std::vector<at::Tensor> zeros;
  if (!data_parallel_.has_flat_gradients()) {
    for (const at::Tensor& weights : main_weights_) zeros.push_back(at::zeros_like(weights));
  }
  make_state();
}

void DistributedOptimizer::lasts(const at::Tensor& tensor,
                                 MemoryCategory category,
                                 std::size_t piece) const {
  data_parallel_.observer().memory_lasts(tensor, {category, "optimizer", owners_[piece]->name});
}

void DistributedOptimizer::make_state() {
  for (std::size_t piece = 0; piece < main_weights_.size(); ++piece) {
    const at::Tensor& weights = main_weights_[piece];
    const auto add = [&](std::vector<at::Tensor>& states, at::Tensor state) {
      lasts(state, MemoryCategory::kOptimizerState, piece);
      states.push_back(std::move(state));
    };
    add(first_moments_, at::zeros_like(weights));
    if (settings_.kind != estimator::Optimizer::kAdamw) continue;
    add(second_moments_, at::zeros_like(weights));
    if (settings_.shared_step && !steps_.empty()) {
      steps_.push_back(steps_.front());
    } else {
      add(steps_, at::zeros({}, weights.options().dtype(at::kFloat)));
    }
  }
}

void DistributedOptimizer::update() {
  if (main_weights_.empty()) return;
  const std::vector<at::Tensor> gradients =
      data_parallel_.step_gradients(main_weights_.front().scalar_type());
  if (settings_.kind == estimator::Optimizer::kSgd) {
    at::_fused_sgd_(main_weights_,
                    gradients,
                    first_moments_,
                    settings_.weight_decay,
                    settings_.momentum,
                    settings_.learning_rate,
                    /*dampening=*/0,
                    /*nesterov=*/false,
                    /*maximize=*/false,
                    first_step_);
    return;
  }
  if (settings_.shared_step)
    steps_.front().add_(1);
  else
    at::_foreach_add_(steps_, 1);
  at::_fused_adamw_(main_weights_,
                    gradients,
                    first_moments_,
                    second_moments_,
                    /*max_exp_avg_sqs=*/{},
                    steps_,
                    settings_.learning_rate,
                    settings_.beta1,
                    settings_.beta2,
                    settings_.weight_decay,
                    settings_.epsilon,
                    /*amsgrad=*/false,
                    /*maximize=*/false);
}

void DistributedOptimizer::copy_to_model() {
  if (!own_main_weights_) return;
  for (std::size_t i = 0; i < main_weights_.size(); ++i) model_weights_[i].copy_(main_weights_[i]);
}

void DistributedOptimizer::step() {
  const c10::NoGradGuard no_grad;
  if (first_moments_.empty()) make_state();
  update();
  first_step_ = false;
  copy_to_model();
  data_parallel_.gather_parameters();
}

int64_t DistributedOptimizer::main_weight_bytes() const {
  return own_main_weights_ ? bytes_of(main_weights_) : 0;
}

int64_t DistributedOptimizer::state_bytes() const {
  return bytes_of(first_moments_) + bytes_of(second_moments_);
}

int64_t DistributedOptimizer::step_scalar_bytes() const {
  if (steps_.empty()) return 0;
  return settings_.shared_step ? steps_.front().element_size() : bytes_of(steps_);
}

}  // namespace models
