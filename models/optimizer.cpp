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
  for (const OwnedPiece& piece : data_parallel.owned_pieces()) {
    if (piece.begin == piece.end) continue;
    owners_.push_back(piece.parameter);
    model_weights_.push_back(piece.weights);
  }
  own_main_weights_ = settings.main_weights && !model_weights_.empty() &&
                      model_weights_.front().scalar_type() != at::kFloat;
  for (std::size_t piece = 0; piece < model_weights_.size(); ++piece) {
    const at::Tensor& weights = model_weights_[piece];
    main_weights_.push_back(own_main_weights_ ? weights.to(at::kFloat) : weights);
    if (own_main_weights_) lasts(main_weights_.back(), MemoryCategory::kMainWeight, piece);
  }
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

/// DeepSpeed casts fp16 ones for its step.
std::vector<at::Tensor> DistributedOptimizer::gradients() const {
  std::vector<at::Tensor> cast;
  for (const OwnedPiece& piece : data_parallel_.owned_pieces()) {
    if (piece.begin == piece.end) continue;
    cast.push_back(piece.gradients.to(main_weights_.front().scalar_type()));
  }
  return cast;
}

void DistributedOptimizer::update() {
  if (main_weights_.empty()) return;
  const std::vector<at::Tensor> reduced = gradients();
  if (settings_.kind == estimator::Optimizer::kSgd) {
    at::_fused_sgd_(main_weights_,
                    reduced,
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
                    reduced,
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
  if (first_step_) make_state();
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
