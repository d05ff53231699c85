#include "models/shard/host_range.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace models {
namespace {

class BeginRange final : public torch::autograd::FunctionPreHook {
 public:
  BeginRange(Observer& observer, std::string name) : observer_(observer), name_(std::move(name)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    observer_.begin_range(name_);
    return gradients;
  }

 private:
  Observer& observer_;
  std::string name_;
};

}  // namespace

void begin_range_in_backward(Observer& observer,
                             const std::string& name,
                             const at::Tensor& output) {
  if (!output.grad_fn()) return;
  output.grad_fn()->add_pre_hook(std::make_unique<BeginRange>(observer, name));
}

}  // namespace models
