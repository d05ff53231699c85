#include "models/layers/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>

#include <mutex>

#include "models/shard/kept_value.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The generator that dropout on `device` draws from; its state is a CPU tensor.
at::Tensor generator_state(const at::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Device& device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

/// Sets the generator back to `state` and, at the end of the scope, to where it was.
class ReplayedRandomNumbers {
 public:
  ReplayedRandomNumbers(const at::Device& device, const at::Tensor& state)
      : device_(device), now_(generator_state(device)) {
    set_generator_state(device_, state);
  }
  ~ReplayedRandomNumbers() { set_generator_state(device_, now_); }
  ReplayedRandomNumbers(const ReplayedRandomNumbers&) = delete;
  ReplayedRandomNumbers& operator=(const ReplayedRandomNumbers&) = delete;

 private:
  at::Device device_;
  at::Tensor now_;
};

struct KeptSegment {
  Segment run;
  Observer* observer;
  at::Tensor random_state;
  CheckpointOptions options;
  OutputKeeper::Kept outputs = {};
};

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
  static at::Tensor forward(AutogradContext* context,
                            at::TensorList inputs,  // a std::vector would not be seen as variables
                            const KeptSegment& segment) {
    keep(context, segment);
    context->save_for_backward(inputs.vec());
    OutputKeeper::Kept& outputs = kept<KeptSegment>(context).outputs;
    const OutputKeeper::Scope scope(segment.options.keeper.get(), &outputs);
    return segment.run(inputs.vec());  // grad mode is off inside a function's forward
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    KeptSegment& segment = kept<KeptSegment>(context);
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().requires_grad_(saved.requires_grad()));
    }
    at::Tensor output = [&] {
      const DirectionScope direction(*segment.observer, estimator::Direction::kRecompute);
      const ReplayedRandomNumbers random(inputs[0].device(), segment.random_state);
      const c10::AutoGradMode with_gradients(true);
      const OutputKeeper::Scope scope(segment.options.keeper.get(), &segment.outputs);
      return segment.run(inputs);
    }();
    const torch::autograd::edge_list roots = {torch::autograd::impl::gradient_edge(output)};
    if (!segment.options.holds_output) output.reset();
    torch::autograd::Engine::get_default_engine().execute(roots,
                                                          {gradients[0]},
                                                          /*keep_graph=*/false,
                                                          /*create_graph=*/false,
                                                          /*accumulate_grad=*/true);
    variable_list input_gradients;
    for (const at::Tensor& input : inputs) input_gradients.push_back(input.grad());
    input_gradients.emplace_back();  // of the segment
    return input_gradients;
  }
};

}  // namespace

at::Tensor checkpoint(Segment segment,
                      const variable_list& inputs,
                      Observer& observer,
                      const CheckpointOptions& options) {
  const at::Tensor state = generator_state(inputs[0].device());
  return CheckpointFunction::apply(at::TensorList(inputs),
                                   KeptSegment{.run = std::move(segment),
                                               .observer = &observer,
                                               .random_state = state,
                                               .options = options});
}

}  // namespace models
