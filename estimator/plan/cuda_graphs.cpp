#include "estimator/plan/cuda_graphs.h"

#include <fmt/ranges.h>

#include <array>
#include <string>

#include "estimator/base/contains.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

constexpr std::string_view kIteration = "full_iteration";

bool names(const TrainingConfig& training, std::string_view module) {
  return contains(training.cuda_graph_modules, std::string(module));
}

bool names(const TrainingConfig& training, GraphModule module) {
  return names(training, to_string(module));
}

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

/// Whether the host never reads how many tokens an expert gets.
bool has_fixed_rows(const Plan& plan) {
  return !plan.model.has_experts() || plan.training.moe_pad_expert_input_to_capacity ||
         plan.training.moe_expert_rank_capacity_factor;
}

std::string named_graphs(const Plan& plan) {
  return fmt::format("training.cuda_graph_impl = {}, cuda_graph_modules = {}",
                     to_string(plan.training.cuda_graph_impl),
                     fmt::join(plan.training.cuda_graph_modules, ","));
}

void check_names(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  for (const std::string& module : t.cuda_graph_modules) {
    rules.require(value_named<GraphModule>(module).has_value() || module == kIteration,
                  "a module that has no CUDA graph",
                  fmt::format("training.cuda_graph_modules: {}", module),
                  "use attn, mlp, moe_router, moe_preprocess or moe");
  }
  rules.require(t.cuda_graph_impl != CudaGraphImpl::kLocal || captures_iteration(t),
                "graphs of layers that Megatron-LM captures by itself are not supported yet",
                named_graphs(rules.plan()),
                "use --cuda-graph-impl transformer_engine, or full_iteration");
}

/// What TransformerConfig.__post_init__ in megatron/core/transformer/transformer_config.py asserts
/// of graphs of layers.
void check_layer_graphs(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!captures_layers(t)) return;
  const auto require = [&](bool holds, const char* what, const char* help) {
    rules.require(holds, what, named_graphs(plan), help);
  };
  const bool of_experts = names(t, GraphModule::kMoe) || names(t, GraphModule::kMoeRouter);
  const bool whole = t.cuda_graph_modules.empty();
  require(t.transformer_impl == TransformerImpl::kTransformerEngine,
          "TransformerEngine captures graphs of its own layers alone",
          "use --transformer-impl transformer_engine");
  require(!names(t, kIteration),
          "a graph of the whole iteration is none of a layer",
          "use --cuda-graph-impl full_iteration");
  require(plan.model.has_experts() || !of_experts,
          "the model has no experts whose graph could be captured",
          "leave out moe and moe_router");
  require(!names(t, GraphModule::kMoe) || !names(t, GraphModule::kMoeRouter),
          "a layer's experts are captured as a whole, or up to the router or the dispatch",
          "leave out moe or moe_router");
  require(!names(t, GraphModule::kMoePreprocess) || names(t, GraphModule::kMoeRouter),
          "the dispatch is prepared in a graph only together with the router",
          "add moe_router, or leave out moe_preprocess");
  require(has_fixed_rows(plan) || !(whole || names(t, GraphModule::kMoe)),
          "whole layers of experts can be captured only if experts have a capacity: "
          "else the host reads how many tokens each gets",
          "use --cuda-graph-modules attn,moe_router,moe_preprocess");
  require(t.recompute != Recompute::kFull,
          "layers that are recomputed as a whole have no graphs",
          "use --recompute-granularity selective, or --cuda-graph-impl full_iteration");
  require(!recomputes(plan, RecomputeModule::kMoe) || !of_experts,
          "recomputation of all experts does not go with a graph of their beginning",
          "leave out moe_router or the recomputation of moe");
}

/// megatron/training/arguments.py asserts the second.
void check_iteration_graph(Rules& rules) {
  const Plan& plan = rules.plan();
  if (!captures_iteration(plan.training)) return;
  rules.require(has_fixed_rows(plan),
                "a graph of the whole iteration needs experts that have a capacity: "
                "else the host reads how many tokens each gets",
                named_graphs(plan),
                "use --cuda-graph-impl transformer_engine --cuda-graph-modules "
                "attn,moe_router,moe_preprocess");
  rules.require(!plan.training.check_for_nan_in_loss_and_grad,
                "the check of losses and gradients for NaN waits for the GPU, which a graph of the "
                "whole iteration cannot",
                "training.check_for_nan_in_loss_and_grad with " + named_graphs(plan),
                "add --no-check-for-nan-in-loss-and-grad");
}

}  // namespace

bool captures_iteration(const TrainingConfig& training) {
  return training.cuda_graph_impl == CudaGraphImpl::kFullIteration ||
         (training.cuda_graph_impl == CudaGraphImpl::kLocal && names(training, kIteration));
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
    if (!is_of_layer || !names(training, name)) continue;
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

void check_cuda_graphs(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  if (t.cuda_graph_impl == CudaGraphImpl::kNone) return;
  rules.require(t.framework == Framework::kMegatronLm,
                "only Megatron-LM's CUDA graphs are supported",
                fmt::format("training.cuda_graph_impl = {}, training.framework = {}",
                            to_string(t.cuda_graph_impl),
                            to_string(t.framework)),
                "leave it out, or use --framework megatron-lm");
  check_names(rules);
  check_layer_graphs(rules);
  check_iteration_graph(rules);
}

}  // namespace estimator
