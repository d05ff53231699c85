#include "models/pipeline/graph_piece.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "models/shard/unbacked_tensor.h"

namespace models {

using torch::autograd::edge_list;
using torch::autograd::impl::gradient_edge;

namespace {

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.detach().requires_grad_(tensor.requires_grad());
}

}  // namespace

GraphPiece::Tensors GraphPiece::forward(const Tensors& inputs, const Body& body) {
  for (const at::Tensor& input : inputs) inputs_.push_back(leaf_of(input));
  Tensors outputs = body(inputs_);
  for (const at::Tensor& output : outputs) {
    outputs_.push_back(gradient_edge(output));
    held_.push_back(output.detach());
  }
  return outputs;
}

at::Tensor GraphPiece::hand_over(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  handed_over_.push_back(gradient_edge(tensor));
  return leaves_.emplace_back(leaf_of(tensor));
}

void GraphPiece::free_inputs(const Tensors& outputs) const {
  Tensors in_use = outputs;
  in_use.insert(in_use.end(), leaves_.begin(), leaves_.end());
  for (const at::Tensor& input : inputs_) {
    const bool is_shared = std::any_of(in_use.begin(), in_use.end(), [&](const at::Tensor& other) {
      return other.is_alias_of(input);
    });
    if (!is_shared) take_memory(input);
  }
}

void GraphPiece::end_with(const at::Tensor& output) {
  outputs_ = {gradient_edge(output)};
  held_.clear();
}

GraphPiece::Tensors GraphPiece::backward(Tensors gradients) {
  edge_list roots;
  Tensors given;
  const auto add = [&](torch::autograd::Edge& root, at::Tensor gradient) {
    if (!root.is_valid() || !gradient.defined()) return;
    roots.push_back(std::move(root));
    given.push_back(std::move(gradient));
  };
  for (std::size_t i = 0; i < outputs_.size(); ++i) add(outputs_[i], std::move(gradients[i]));
  for (std::size_t i = 0; i < leaves_.size(); ++i) add(handed_over_[i], leaves_[i].grad());
  outputs_.clear();
  handed_over_.clear();
  torch::autograd::Engine::get_default_engine().execute(roots,
                                                        given,
                                                        /*keep_graph=*/false,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
  Tensors of_inputs;
  for (const at::Tensor& input : inputs_) of_inputs.push_back(input.grad());
  inputs_.clear();
  held_.clear();
  return of_inputs;
}

}  // namespace models
