#include "models/shard/delayed_scales.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

/// Input, weight and output; gradients of output and input (set_meta_tensor in
/// transformer_engine/pytorch/module/base.py).
constexpr std::array<int64_t, 2> kTensorsOfProduct = {3, 2};

/// Modules of which one kernel makes new scales (AMAX_PARAMS_LIMIT in
/// transformer_engine/common/recipe/delayed_scaling.cu): 24 bytes each, and of all, of 4,096.
constexpr std::size_t kModulesOfKernel = (4096 - 24) / 24;

}  // namespace

DelayedScales::Tensors DelayedScales::Tensors::copy() const {
  return {.scales = scales.clone(), .largest = largest.clone()};
}

void DelayedScales::Tensors::become(const Tensors& others) const {
  largest.copy_(others.largest);
  scales.copy_(others.scales);
}

DelayedScales::DelayedScales(std::shared_ptr<Communicator> group,
                             at::Device device,
                             Observer& observer)
    : group_(std::move(group)), device_(device), observer_(observer) {}

void DelayedScales::begin_layers() {
  outer_.push_back(is_first_);
  if (depth_++ == 0) is_first_ = true;
}

void DelayedScales::end_layers() {
  is_first_ = outer_.back();
  outer_.pop_back();
  if (--depth_ == 0 && c10::GradMode::is_enabled()) agree(kForward);
}

/// What a checkpoint brings back remains after it.
void DelayedScales::begin_checkpoint(Checkpoint which) {
  checkpoint_ = which;
  if (which == Checkpoint::kForward) return of_checkpoints_.push_back(is_first_);
  is_first_ = of_checkpoints_.front();
  of_checkpoints_.pop_front();
  begin_layers();
}

void DelayedScales::end_checkpoint(Checkpoint which) {
  if (which == Checkpoint::kAgain) end_layers();
  checkpoint_ = Checkpoint::kNone;
}

DelayedScales::OfModule DelayedScales::add_module(int64_t products) {
  const c10::NoGradGuard no_grad;
  const auto options = at::TensorOptions().device(device_).dtype(at::kFloat);
  OfModule made;
  for (const Pass pass : {kForward, kBackward}) {
    const int64_t count = kTensorsOfProduct[pass] * products;
    made[pass] = {.scales = at::ones({count}, options), .largest = at::zeros({1, count}, options)};
    for (const at::Tensor& tensor : {made[pass].scales, made[pass].largest}) {
      observer_.memory_lasts(
          tensor,
          {.category = estimator::MemoryCategory::kWorkspace, .owner = "fp8_scales", .name = {}});
    }
  }
  modules_.push_back(made);
  return made;
}

bool DelayedScales::comes_first(bool leaves_it) {
  if (!c10::GradMode::is_enabled()) return false;
  const bool is_first = is_first_;
  if (!leaves_it || checkpoint_ != Checkpoint::kAgain) is_first_ = false;
  return is_first;
}

/// reduce_and_update_fp8_tensors
void DelayedScales::agree(Pass pass) const {
  if (modules_.empty()) return;
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> largest;
  for (const OfModule& module : modules_) largest.push_back(module[pass].largest.select(0, 0));
  const at::Tensor all = at::cat(largest);
  if (group_) group_->all_reduce_max(all);
  for (std::size_t first = 0; first < modules_.size(); first += kModulesOfKernel) {
    std::vector<at::Tensor> written;
    const std::size_t end = std::min(modules_.size(), first + kModulesOfKernel);
    for (std::size_t i = first; i < end; ++i) {
      written.insert(written.end(), {modules_[i][pass].scales, modules_[i][pass].largest});
    }
    KernelScope kernel("te::update_delayed_scales");
    kernel.moves(written, written);
  }
}

struct AgreeFunction : torch::autograd::Function<AgreeFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& input,
                            const std::shared_ptr<DelayedScales>& scales) {
    keep(context, scales);
    return input.view(input.sizes());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    kept<std::shared_ptr<DelayedScales>>(context)->agree(DelayedScales::kBackward);
    return {gradients[0], at::Tensor()};
  }
};

at::Tensor agreed_on_after(const at::Tensor& input, const std::shared_ptr<DelayedScales>& scales) {
  return AgreeFunction::apply(input, scales);
}

ScaledModule::ScaledModule(std::shared_ptr<DelayedScales> scales, int64_t products)
    : scales_(std::move(scales)), products_(products) {}

bool ScaledModule::runs_again() const {
  return scales_->checkpoint_ == DelayedScales::Checkpoint::kAgain;
}

void ScaledModule::begin() {
  if (!runs()) return;
  const c10::NoGradGuard no_grad;
  const Tensors& forward = own_[DelayedScales::kForward];
  if (runs_again()) {
    latest_ = forward.copy();
    forward.become(of_checkpoints_.front());
    of_checkpoints_.pop_front();
    return;
  }
  if (!forward.scales.defined()) own_ = scales_->add_module(products_);
  const bool will_run_again = scales_->checkpoint_ == DelayedScales::Checkpoint::kForward;
  if (will_run_again) of_checkpoints_.push_back(forward.copy());
}

void ScaledModule::end() {
  if (!runs() || !runs_again()) return;
  const c10::NoGradGuard no_grad;
  own_[DelayedScales::kForward].become(latest_);
}

void ScaledModule::agree_after_backward() const { scales_->agree(DelayedScales::kBackward); }

}  // namespace models
