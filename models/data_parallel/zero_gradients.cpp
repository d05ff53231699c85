#include "models/data_parallel/zero_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "models/shard/unbacked_tensor.h"

namespace models {
namespace {

/// Tells that autograd's own gradient is there.
class WhenThere : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit WhenThere(std::function<void()> call) : call_(std::move(call)) {}
  void operator()(const torch::autograd::Variable&) override {
    const c10::NoGradGuard no_grad;
    call_();
  }

 private:
  std::function<void()> call_;
};

}  // namespace

at::Tensor joined_through_host(const std::vector<at::Tensor>& tensors,
                               int64_t elements,
                               bool has_values) {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions options = tensors.front().options().requires_grad(false);
  std::vector<at::Tensor> on_host;
  for (const at::Tensor& tensor : tensors) {
    if (has_values) on_host.push_back(tensor.detach().to(at::kCPU, false, /*copy=*/true).view(-1));
    take_memory(tensor);
  }
  if (options.device().is_cuda()) c10::getDeviceAllocator(at::kCUDA)->emptyCache();
  at::Tensor flat = at::zeros({elements}, options);
  int64_t begin = 0;
  for (const at::Tensor& tensor : on_host) {
    flat.narrow(0, begin, tensor.numel()).copy_(tensor);
    begin += tensor.numel();
  }
  return flat;
}

void when_gradient_is_there(Parameter& parameter, std::function<void()> call) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter.value,
                                                 std::make_unique<WhenThere>(std::move(call)));
}

at::Tensor overflow_of_copy(const at::Tensor& gradients) {
  const at::Tensor wide = gradients.to(at::kFloat);
  const at::Tensor nan = at::isnan(wide);
  const at::Tensor infinite = at::isinf(wide);
  const at::Tensor either = nan.logical_or(infinite);
  return either.to(at::kFloat).max();
}

at::Tensor overflow_of(const at::Tensor& gradients) {
  const at::Tensor infinite = at::isinf(gradients).any();
  return infinite.logical_or(at::isnan(gradients).any());
}

void agree_on_overflow(const std::vector<at::Tensor>& found,
                       const std::shared_ptr<Communicator>& group) {
  const at::Tensor flag = at::stack(found).to(at::kBool).any().to(at::kByte).view({1});
  if (group) group->all_reduce_max(flag);
}

at::Tensor norm_of_ranks(const std::vector<at::Tensor>& gradients,
                         const std::shared_ptr<Communicator>& group,
                         const at::TensorOptions& options) {
  std::vector<at::Tensor> norms;
  norms.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) {
    norms.push_back(at::linalg_vector_norm(gradient.to(at::kDouble), 2));
  }
  at::Tensor sum =
      norms.empty() ? at::zeros({}, options) : at::stack(norms).square().sum().to(options);
  if (group) group->all_reduce(sum);
  const at::Tensor norm = sum.sqrt();
  const at::Tensor is_none = at::isnan(norm).logical_or(at::isinf(norm));
  return at::where(is_none, at::scalar_tensor(-1, options.device(at::kCPU)).to(options), norm);
}

at::Tensor norm_of_groups(const std::vector<at::Tensor>& norms) {
  return at::linalg_vector_norm(at::stack(norms), 2);
}

at::Tensor clipping_factor(const at::Tensor& norm) {
  constexpr double kLossScale = 1, kLimit = 1e30;
  const at::Tensor excess = (norm / kLossScale + 1e-6) / kLimit;
  return 1.0 / (excess.clamp_min(1) * kLossScale);
}

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) return tensors.front().view(-1);
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.view(-1));
  return at::cat(flat);
}

}  // namespace models
