#include "models/shard/host_work.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "estimator/profile/host_range.h"

namespace models {
namespace {

void tell(at::RecordFunction& range, const std::string& name) {
  if (range.isActive()) range.before(estimator::kHostRange + name);
}

class BeginsPython final : public torch::autograd::FunctionPreHook {
 public:
  explicit BeginsPython(std::string name) : name_(std::move(name)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    begin_python(name_);
    return gradients;
  }

 private:
  std::string name_;
};

}  // namespace

void begin_python(const std::string& name) {
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  tell(range, name);
}

void begin_python_in_backward(const std::string& name, const at::Tensor& output) {
  if (output.grad_fn()) output.grad_fn()->add_pre_hook(std::make_unique<BeginsPython>(name));
}

void dispatch_on_host(int operators) {
  for (int i = 0; i < operators; ++i) begin_python(estimator::kDispatch);
}

DispatchedAgain::DispatchedAgain() { tell(watch_, estimator::kDispatchedAgain); }

}  // namespace models
