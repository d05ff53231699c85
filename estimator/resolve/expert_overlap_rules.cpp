#include "estimator/base/contains.h"
#include "estimator/plan/cuda_graphs.h"
#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

constexpr const char* kOverlapKey = "parallelism.overlap_moe_expert_parallel_comm, ";
constexpr const char* kLeaveOut = "leave out --overlap-moe-expert-parallel-comm";

/// Keys that mean nothing without it.
void check_unused(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const auto unused = [&](bool is_set, const char* key) {
    rules.require(!is_set,
                  "the key is only for forwards that run together with backwards",
                  fmt::format("parallelism.{} without overlap_moe_expert_parallel_comm", key),
                  "add --overlap-moe-expert-parallel-comm, or leave it out");
  };
  unused(p.delay_wgrad_compute, "delay_wgrad_compute");
  unused(p.ep_overlap_early_attn_memory_release, "ep_overlap_early_attn_memory_release");
}

/// __post_init__ of TransformerConfig (megatron/core/transformer/transformer_config.py, d98e8a6).
void check_as_megatron_does(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const TrainingConfig& t = plan.training;
  rules.require(p.pipeline == 1 || p.virtual_stages > 1,
                "in a pipeline, forwards run together with backwards only between virtual stages",
                kOverlapKey + fmt::format("pipeline = {}, virtual_stages = 1", p.pipeline),
                "use virtual stages (--vpp), or one pipeline stage");
  rules.require(p.expert > 1,
                "there is no communication of experts to overlap",
                kOverlapKey + std::string("expert = 1"),
                "use several expert ranks (--ep)");
  rules.require(t.moe_token_dispatcher_type != TokenDispatcher::kAllGather,
                "tokens are gathered, and not sent to their experts",
                kOverlapKey + std::string("training.moe_token_dispatcher_type = allgather"),
                "use --moe-token-dispatcher-type alltoall or flex");
  rules.require(t.recompute != Recompute::kFull && !recomputes(plan, RecomputeModule::kMoe),
                "layers, or their experts, are recomputed as a whole",
                kOverlapKey + std::string("training.recompute"),
                "recompute other modules (--recompute-granularity selective), or none");
  rules.require(t.dtype != Dtype::kFp32,
                "forwards run together with backwards only in 16 bits",
                kOverlapKey + std::string("training.dtype = fp32"),
                "use --bf16");
  rules.require(plan.model.mtp_num_layers <= 1,
                "forwards run together with backwards with at most one layer that predicts more",
                kOverlapKey + fmt::format("model.mtp_num_layers = {}", plan.model.mtp_num_layers),
                "use --mtp-num-layers 1");
  const auto captures = [&](GraphModule module) {
    return captures_layers(t) && contains(t.cuda_graph_modules, to_string(module));
  };
  rules.require(!captures(GraphModule::kMoe) && !captures(GraphModule::kMlp),
                "no CUDA graph may hold the experts or the MLP",
                kOverlapKey + std::string("training.cuda_graph_modules"),
                "capture attn, moe_router and moe_preprocess alone");
  const bool delays_biases = p.delay_wgrad_compute && p.overlap_grad_reduce &&
                             captures(GraphModule::kAttention) &&
                             (plan.model.add_bias_linear || plan.model.add_qkv_bias);
  rules.require(!delays_biases,
                "gradients of biases in a CUDA graph cannot be put off",
                "parallelism.delay_wgrad_compute, training.cuda_graph_modules: attn",
                "add --disable-bias-linear, or do not capture attn");
}

/// What is built of it.
void check_what_is_built(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const TrainingConfig& t = plan.training;
  rules.require(t.framework == Framework::kMegatronLm &&
                    t.transformer_impl == TransformerImpl::kTransformerEngine,
                "only Megatron-LM's layers of TransformerEngine run in such pieces",
                kOverlapKey + fmt::format("training.framework = {}", to_string(t.framework)),
                kLeaveOut);
  rules.require(!plan.model.mtp_num_layers || plan.model.has_experts_in(plan.model.num_layers),
                "the layer that predicts a further token must have experts",
                kOverlapKey + std::string("model.moe_layer_freq"),
                "give the last layer experts");
  rules.require(!p.delay_wgrad_compute || t.gradient_accumulation_fusion,
                "products can be put off only where they add to the gradients themselves",
                "parallelism.delay_wgrad_compute, training.gradient_accumulation_fusion = false",
                "leave out --no-gradient-accumulation-fusion");
  rules.require(
      !p.defer_embedding_wgrad_compute && !p.tp_comm_overlap,
      "forwards that run together with backwards are not supported with it yet",
      kOverlapKey + fmt::format("defer_embedding_wgrad_compute = {}, tp_comm_overlap = {}",
                                p.defer_embedding_wgrad_compute,
                                p.tp_comm_overlap),
      "leave them out");
}

}  // namespace

void check_expert_overlap(Rules& rules) {
  if (!rules.plan().parallelism.overlap_moe_expert_parallel_comm) return check_unused(rules);
  check_as_megatron_does(rules);
  check_what_is_built(rules);
}

}  // namespace estimator
