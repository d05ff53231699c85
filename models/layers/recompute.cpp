#include "models/layers/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>

#include <memory>
#include <mutex>
#include <utility>

#include "models/shard/autocast.h"
#include "models/shard/kept_value.h"
#include "models/shard/unbacked_tensor.h"

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

using Gradients = std::shared_ptr<variable_list>;

struct KeptSegment {
  Segments run;
  Observer* observer;
  at::Tensor random_state;
  CheckpointOptions options;
  std::vector<int64_t> first_shape = {};  ///< of the first input, if it is divided
  OutputKeeper::Kept outputs = {};
  std::optional<Autocast> autocast = {};  ///< in force around the forward
  Gradients handed_in = {};               ///< of the outputs; null if autograd hands them over
};

/// Leaves only this rank's part of the tensor.
void cut(const at::Tensor& whole, const Communicator& group) {
  const int64_t part = whole.numel() / group.size();
  whole.set_data(whole.detach().view(-1).narrow(0, group.index() * part, part).clone());
}

/// Gathers what cut() divided.
void restore(const at::Tensor& part, Communicator& group, const std::vector<int64_t>& shape) {
  part.set_data(gather_sequence(part.detach(), group).view(shape));
}

/// The inputs as leaves of a graph of their own.
variable_list as_leaves(const variable_list& saved) {
  variable_list inputs;
  for (const at::Tensor& each : saved) {
    inputs.push_back(each.detach().requires_grad_(each.requires_grad()));
  }
  return inputs;
}

/// Comes between a segment and what reads its outputs. Autograd's node holds the gradients that it
/// is given until it is over; so it is given none, and takes those that are left here.
struct HandInFunction : torch::autograd::Function<HandInFunction> {
  static variable_list forward(AutogradContext* context,
                               at::TensorList outputs,
                               const Gradients& gradients) {
    keep(context, gradients);
    return outputs.vec();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    variable_list without_memory;
    for (const at::Tensor& gradient : gradients) {
      without_memory.push_back(unbacked_tensor(gradient.sizes(), gradient.options()));
    }
    without_memory.emplace_back();  // of the gradients
    *kept<Gradients>(context) = std::move(gradients);
    return without_memory;
  }
};

/// The root of a backward that begins with `gradients` of its inputs, and holds none of them.
struct HandOverFunction : torch::autograd::Function<HandOverFunction> {
  static at::Tensor forward(AutogradContext* context,
                            at::TensorList inputs,
                            const Gradients& gradients) {
    keep(context, gradients);
    return at::empty({0}, inputs[0].options());
  }

  static variable_list backward(AutogradContext* context, const variable_list&) {
    variable_list all = std::move(*kept<Gradients>(context));
    all.emplace_back();  // of the gradients
    return all;
  }
};

at::Tensor hand_over(const variable_list& outputs, variable_list gradients) {
  const c10::AutoGradMode with_gradients(true);
  return HandOverFunction::apply(at::TensorList(outputs),
                                 std::make_shared<variable_list>(std::move(gradients)));
}

void run_backward(const torch::autograd::edge_list& roots, const variable_list& gradients) {
  torch::autograd::Engine::get_default_engine().execute(roots,
                                                        gradients,
                                                        /*keep_graph=*/false,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
  static variable_list forward(
      AutogradContext* context,
      at::TensorList inputs,  // a std::vector would not be seen as variables
      const KeptSegment& segment) {
    keep(context, segment);
    context->save_for_backward(inputs.vec());
    KeptSegment& own = kept<KeptSegment>(context);
    const OutputKeeper::Scope scope(segment.options.keeper.get(), &own.outputs);
    variable_list outputs = in_checkpoint(segment.options.scales.get(),
                                          DelayedScales::Checkpoint::kForward,
                                          [&] {  // grad mode is off inside a function's forward
                                            return segment.run(inputs.vec());
                                          });
    if (const Group& group = segment.options.dividing) {
      own.first_shape = inputs[0].sizes().vec();
      cut(inputs[0], *group);
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    KeptSegment& segment = kept<KeptSegment>(context);
    if (segment.handed_in) gradients = std::move(*segment.handed_in);
    variable_list inputs;
    variable_list outputs = [&] {
      const DirectionScope direction(*segment.observer, estimator::Direction::kRecompute);
      const variable_list saved = context->get_saved_variables();
      if (const Group& group = segment.options.dividing) {
        restore(saved[0], *group, segment.first_shape);
      }
      inputs = as_leaves(saved);
      const ReplayedRandomNumbers random(inputs[0].device(), segment.random_state);
      const c10::AutoGradMode with_gradients(true);
      const AutocastScope autocast(segment.autocast);
      const OutputKeeper::Scope scope(segment.options.keeper.get(), &segment.outputs);
      return in_checkpoint(segment.options.scales.get(), DelayedScales::Checkpoint::kAgain, [&] {
        return segment.run(inputs);
      });
    }();
    if (segment.options.holds_output) {
      run_backward({torch::autograd::impl::gradient_edge(outputs[0])}, {gradients[0]});
    } else {
      const at::Tensor root = hand_over(std::exchange(outputs, {}), std::move(gradients));
      run_backward({torch::autograd::impl::gradient_edge(root)}, {root.detach()});
    }
    variable_list input_gradients;
    for (const at::Tensor& input : inputs) input_gradients.push_back(input.grad());
    input_gradients.emplace_back();  // of the segment
    return input_gradients;
  }
};

}  // namespace

at::Tensor checkpoint(const Segment& segment,
                      const variable_list& inputs,
                      Observer& observer,
                      const CheckpointOptions& options) {
  const auto run = [segment](const variable_list& from) { return variable_list{segment(from)}; };
  return checkpoint(Segments(run), inputs, observer, options)[0];
}

variable_list checkpoint(Segments segment,
                         const variable_list& inputs,
                         Observer& observer,
                         const CheckpointOptions& options) {
  const at::Device device = inputs[0].device();
  const at::Tensor state = generator_state(device);
  const Gradients handed_in = options.holds_output ? nullptr : std::make_shared<variable_list>();
  variable_list outputs =
      CheckpointFunction::apply(at::TensorList(inputs),
                                KeptSegment{.run = std::move(segment),
                                            .observer = &observer,
                                            .random_state = state,
                                            .options = options,
                                            .autocast = current_autocast(device.type()),
                                            .handed_in = handed_in});
  if (!handed_in) return outputs;
  return HandInFunction::apply(at::TensorList(outputs), handed_in);
}

struct DiscardedOutputs::State {
  Segments run;
  Observer* observer;
  at::Tensor random_state;
  variable_list saved;                ///< inputs
  std::vector<c10::Storage> outputs;  ///< of the forward, which are freed
  variable_list inputs, again;        ///< of the second forward

  void compute_again() {
    if (!again.empty()) return;
    inputs = as_leaves(saved);
    {
      const DirectionScope direction(*observer, estimator::Direction::kRecompute);
      const ReplayedRandomNumbers random(inputs[0].device(), random_state);
      const c10::AutoGradMode with_gradients(true);
      again = run(inputs);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) share_memory(outputs[i], again[i].storage());
    outputs.clear();
    saved.clear();
  }
};

namespace {

using DiscardedState = std::shared_ptr<DiscardedOutputs::State>;

struct DiscardingFunction : torch::autograd::Function<DiscardingFunction> {
  static variable_list forward(AutogradContext* context,
                               at::TensorList inputs,
                               const DiscardedState& state) {
    keep(context, state);
    return state->run(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const DiscardedState state = kept<DiscardedState>(context);
    torch::autograd::edge_list roots;
    variable_list of_roots;
    for (std::size_t i = 0; i < state->again.size(); ++i) {
      if (!gradients[i].defined()) continue;
      roots.push_back(torch::autograd::impl::gradient_edge(state->again[i]));
      of_roots.push_back(gradients[i]);
    }
    run_backward(roots, of_roots);
    variable_list input_gradients;
    for (const at::Tensor& input : state->inputs) input_gradients.push_back(input.grad());
    input_gradients.emplace_back();  // of the state
    state->again.clear();
    state->inputs.clear();
    return input_gradients;
  }
};

}  // namespace

variable_list DiscardedOutputs::run(Segments segment,
                                    const variable_list& inputs,
                                    Observer& observer) {
  state_ = std::make_shared<State>(State{.run = std::move(segment),
                                         .observer = &observer,
                                         .random_state = generator_state(inputs[0].device()),
                                         .saved = inputs});
  variable_list outputs = DiscardingFunction::apply(at::TensorList(inputs), state_);
  for (const at::Tensor& output : outputs) state_->outputs.push_back(output.storage());
  return outputs;
}

void DiscardedOutputs::discard(const at::Tensor& following) const {
  for (const c10::Storage& output : state_->outputs) take_memory(output);
  if (!following.requires_grad()) return;
  following.register_hook([state = state_](const at::Tensor&) { state->compute_again(); });
}

}  // namespace models
