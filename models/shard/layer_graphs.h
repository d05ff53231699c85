// CUDA graphs of layers, as Megatron-LM captures them (TECudaGraphHelper in
// megatron/core/transformer/cuda_graphs.py) with TransformerEngine's make_graphed_callables()
// (transformer_engine/pytorch/graph.py, whose buffers are reused):
//
//   a graph reads a tensor that stays, into which the layer's input is copied; there are as many as
//   forwards of layers wait for their backward at once;
//   all that it allocates lies in a pool of its own, which here is that of a stream;
//   its outputs stay until its backward, and the gradient of its input until the next backward;
//   the gradients of its outputs are copied into tensors that stay, one for each shape.
//
// The shard runs a graph's kernels one by one. A real run allocates the pool when it captures.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/plan/cuda_graphs.h"
#include "models/shard/side_stream.h"

namespace models {

/// Of all layers of a rank.
class LayerGraphs : public std::enable_shared_from_this<LayerGraphs> {
 public:
  explicit LayerGraphs(const estimator::TrainingConfig& training) : training_(training) {}

  /// Begins a layer's graph if the module is the first in it. Returns what the module reads.
  at::Tensor begin(estimator::GraphModule module, bool has_experts, const at::Tensor& input);

  /// Ends it if the module is the last in it. Returns what is read of its outputs.
  std::vector<at::Tensor> end(estimator::GraphModule module,
                              bool has_experts,
                              std::vector<at::Tensor> outputs);

 private:
  friend struct GraphInput;
  friend struct GraphOutputs;
  using Tensors = std::vector<at::Tensor>;

  at::Tensor take_input(const at::Tensor& like);
  void give_back_input(const at::Tensor& input, const at::Tensor& gradient);
  /// The tensors for gradients of outputs like these.
  const Tensors& gradients_like(const Tensors& outputs);

  const estimator::TrainingConfig& training_;
  std::optional<SideStream> pool_;
  std::optional<SideStream::Scope> running_;
  Tensors free_inputs_;  ///< all of one shape: that of the residual stream
  std::vector<Tensors> output_gradients_;
  at::Tensor last_gradient_;
};

}  // namespace models
