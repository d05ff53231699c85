// A part of a forward with a graph of its own, so that its backward runs by itself (ScheduleNode in
// megatron/core/pipeline_parallel/utils.py, d98e8a6).
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <vector>

namespace models {

class GraphPiece {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Body = std::function<Tensors(const Tensors&)>;

  /// Runs `body` on leaves that share the memory of `inputs`. The piece holds these and the outputs
  /// until its backward has ended.
  Tensors forward(const Tensors& inputs, const Body& body);

  /// Within the body: a leaf for what another piece reads beside this one's outputs. The piece
  /// holds it, and its gradient, as long as it lives.
  at::Tensor hand_over(const at::Tensor& tensor);

  /// Frees the memory of the inputs, which nothing needs any more but `outputs` that share it
  /// (those of a single rank, which sends nothing).
  void free_inputs(const Tensors& outputs) const;

  /// `output` has taken the place of the outputs: it was made of them.
  void end_with(const at::Tensor& output);

  /// Gradients of the outputs -> those of the inputs. The graph is gone then.
  Tensors backward(Tensors gradients);

 private:
  Tensors inputs_, leaves_, held_;
  std::vector<torch::autograd::Edge> outputs_, handed_over_;
};

}  // namespace models
