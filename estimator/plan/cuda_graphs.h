// CUDA graphs: what Megatron-LM captures of a step (megatron/core/transformer/cuda_graphs.py and
// full_cuda_graph.py @d98e8a6). A graph of a layer holds its modules from the first that the plan
// captures to the last.
#pragma once

#include <optional>
#include <string_view>

#include "estimator/plan/plan.h"

namespace estimator {

/// Parts of a layer, in their order. The norm before experts counts as the MLP of their layer.
enum class GraphModule { kAttention, kMlp, kMoeRouter, kMoePreprocess, kMoe };
constexpr std::array<EnumName<GraphModule>, 5> enum_names(GraphModule) {
  return {{{GraphModule::kAttention, "attn"},
           {GraphModule::kMlp, "mlp"},
           {GraphModule::kMoeRouter, "moe_router"},
           {GraphModule::kMoePreprocess, "moe_preprocess"},
           {GraphModule::kMoe, "moe"}}};
}

/// What --cuda-graph-modules calls the graph of the whole iteration.
inline constexpr std::string_view kIterationGraph = "full_iteration";

/// Whether the plan asks for the graph of this name.
bool names_graph(const TrainingConfig& training, std::string_view module);

/// Whether all forwards and backwards of a step are one graph.
bool captures_iteration(const TrainingConfig& training);

/// Whether layers have graphs of their own.
bool captures_layers(const TrainingConfig& training);

/// The first and the last module of the graph of a layer with experts, or of one without; empty if
/// it has none.
struct GraphSpan {
  GraphModule first = GraphModule::kAttention;
  GraphModule last = GraphModule::kAttention;

  bool holds(GraphModule module) const { return first <= module && module <= last; }
};
std::optional<GraphSpan> graph_span(const TrainingConfig& training, bool has_experts);

/// Of a kernel of the module with this path in the profile of a rank, "layers.3.mlp.router": the
/// layer, and where in it the kernel is. What belongs to the layer itself, like the sum with its
/// input, has no part: it is where the kernel before it is. Empty outside of layers.
struct PlaceInLayer {
  std::string_view layer;
  std::optional<GraphModule> part;
};
std::optional<PlaceInLayer> place_in_layer(std::string_view module);

}  // namespace estimator
