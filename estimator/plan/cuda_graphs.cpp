#include "estimator/plan/cuda_graphs.h"

#include <array>
#include <string>

#include "estimator/base/contains.h"

namespace estimator {
namespace {

/// The layer of a layer of multi-token prediction.
constexpr std::string_view kOfPrediction = "mtp_model_layer.";

/// How paths of modules begin within a layer; the last row that holds counts.
struct PartPrefix {
  std::string_view prefix;
  GraphModule part;
};
constexpr std::array<PartPrefix, 9> kParts = {{{"input_layernorm", GraphModule::kAttention},
                                               {"self_attention", GraphModule::kAttention},
                                               {"pre_mlp_layernorm", GraphModule::kMlp},
                                               {"mlp", GraphModule::kMoe},
                                               {"mlp.linear", GraphModule::kMlp},
                                               {"mlp.activation", GraphModule::kMlp},
                                               {"mlp.router", GraphModule::kMoeRouter},
                                               {"mlp.shared_experts", GraphModule::kMoeRouter},
                                               {"mlp.preprocess", GraphModule::kMoePreprocess}}};

}  // namespace

bool names_graph(const TrainingConfig& training, std::string_view module) {
  return contains(training.cuda_graph_modules, std::string(module));
}

bool captures_iteration(const TrainingConfig& training) {
  return training.cuda_graph_impl == CudaGraphImpl::kFullIteration ||
         (training.cuda_graph_impl == CudaGraphImpl::kLocal &&
          names_graph(training, kIterationGraph));
}

bool captures_layers(const TrainingConfig& training) {
  return training.cuda_graph_impl == CudaGraphImpl::kTransformerEngine;
}

std::optional<GraphSpan> graph_span(const TrainingConfig& training, bool has_experts) {
  using enum GraphModule;
  if (!captures_layers(training)) return std::nullopt;
  const GraphModule whole = has_experts ? kMoe : kMlp;
  if (training.cuda_graph_modules.empty()) return GraphSpan{.first = kAttention, .last = whole};
  std::optional<GraphSpan> span;
  for (const auto& [module, name] : enum_names(GraphModule{})) {
    const bool is_of_layer = module == kAttention || (module == kMlp) != has_experts;
    if (!is_of_layer || !names_graph(training, name)) continue;
    if (!span) span = GraphSpan{.first = module == kAttention ? kAttention : kMlp};
    span->last = module;
  }
  return span;
}

std::optional<PlaceInLayer> place_in_layer(std::string_view module) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t number = module.find(kLayers);
  if (number == std::string_view::npos) return std::nullopt;
  const std::size_t dot = module.find('.', number + kLayers.size());
  if (dot == std::string_view::npos) return PlaceInLayer{.layer = module, .part = std::nullopt};
  std::string_view rest = module.substr(dot + 1);
  if (rest.starts_with(kOfPrediction)) rest.remove_prefix(kOfPrediction.size());
  PlaceInLayer place{.layer = module.substr(0, dot), .part = std::nullopt};
  for (const auto& [prefix, part] : kParts) {
    if (rest.starts_with(prefix)) place.part = part;
  }
  return place;
}

}  // namespace estimator
