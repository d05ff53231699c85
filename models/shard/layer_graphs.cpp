#include "models/shard/layer_graphs.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "models/shard/kept_value.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct GraphedTensor {
  std::shared_ptr<LayerGraphs> graphs;
  at::Tensor input;
};

bool are_alike(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type();
  });
}

}  // namespace

struct GraphInput : torch::autograd::Function<GraphInput> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const std::shared_ptr<LayerGraphs>& graphs) {
    at::Tensor read = graphs->take_input(input);
    keep(context, GraphedTensor{graphs, read});
    return read.copy_(input).detach();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const GraphedTensor& graphed = kept<GraphedTensor>(context);
    graphed.graphs->give_back_input(graphed.input, gradients[0]);
    return {gradients[0], at::Tensor()};
  }
};

struct GraphOutputs : torch::autograd::Function<GraphOutputs> {
  static variable_list forward(AutogradContext* context,
                               at::TensorList outputs,
                               const std::shared_ptr<LayerGraphs>& graphs) {
    context->save_for_backward(outputs.vec());
    keep(context, graphs);
    variable_list read;
    for (const at::Tensor& output : outputs) read.push_back(output.detach());
    return read;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& graphs = kept<std::shared_ptr<LayerGraphs>>(context);
    variable_list copied = graphs->gradients_like(gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      copied[i] = copied[i].copy_(gradients[i]).detach();
    }
    copied.emplace_back();  // of the graphs
    return copied;
  }
};

at::Tensor LayerGraphs::take_input(const at::Tensor& like) {
  if (free_inputs_.empty()) return at::empty_like(like);
  at::Tensor input = std::move(free_inputs_.back());
  free_inputs_.pop_back();
  return input;
}

void LayerGraphs::give_back_input(const at::Tensor& input, const at::Tensor& gradient) {
  free_inputs_.push_back(input);
  last_gradient_ = gradient;
}

const LayerGraphs::Tensors& LayerGraphs::gradients_like(const Tensors& outputs) {
  const auto found = std::find_if(output_gradients_.begin(),
                                  output_gradients_.end(),
                                  [&](const Tensors& known) { return are_alike(known, outputs); });
  if (found != output_gradients_.end()) return *found;
  Tensors& made = output_gradients_.emplace_back();
  for (const at::Tensor& output : outputs) made.push_back(at::empty_like(output));
  return made;
}

at::Tensor LayerGraphs::begin(estimator::GraphModule module,
                              bool has_experts,
                              const at::Tensor& input) {
  const auto span = estimator::graph_span(training_, has_experts);
  if (!span || span->first != module) return input;
  if (!pool_) pool_.emplace(input.device());
  at::Tensor read = GraphInput::apply(input, shared_from_this());
  pool_->wait_for_current();
  running_.emplace(*pool_);
  return read;
}

std::vector<at::Tensor> LayerGraphs::end(estimator::GraphModule module,
                                         bool has_experts,
                                         std::vector<at::Tensor> outputs) {
  const auto span = estimator::graph_span(training_, has_experts);
  if (!span || span->last != module || !running_) return outputs;
  running_.reset();
  pool_->join();
  return GraphOutputs::apply(at::TensorList(outputs), shared_from_this());
}

}  // namespace models
