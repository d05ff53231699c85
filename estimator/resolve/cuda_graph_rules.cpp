#include <fmt/ranges.h>

#include <string>

#include "estimator/plan/cuda_graphs.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

bool names(const TrainingConfig& training, GraphModule module) {
  return names_graph(training, to_string(module));
}

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
    rules.require(value_named<GraphModule>(module).has_value() || module == kIterationGraph,
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
  require(!names_graph(t, kIterationGraph),
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
