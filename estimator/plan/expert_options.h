// The options of training that are those of experts; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// How tokens reach their experts, and how the experts run.
template <class Visitor>
void visit_dispatch(Visitor& visit, TrainingConfig& training) {
  visit("moe_token_dispatcher_type",
        training.moe_token_dispatcher_type,
        {"how tokens are sent to their experts; flex is DeepEP or HybridEP",
         {{"--moe-token-dispatcher-type"}}});
  visit("moe_flex_dispatcher_backend",
        training.moe_flex_dispatcher_backend,
        {"megatron-lm: whose kernels and buffers the dispatcher flex uses",
         {{"--moe-flex-dispatcher-backend"}}});
  visit("moe_flex_dispatcher_num_sms",
        training.moe_flex_dispatcher_num_sms,
        {"multiprocessors that a call of the dispatcher flex uses; auto: as the library takes: "
         "deepep "
         "20, hybridep 24 in an NVLink domain, else 8",
         Range{2, 1e3},
         {{"--moe-flex-dispatcher-num-sms"}}});
  visit("moe_router_dtype",
        training.moe_router_dtype,
        {"type of the router's logits and of the experts' weights; none: that of the tokens",
         {{"--moe-router-dtype"}}});
  visit(
      "moe_router_fusion",
      training.moe_router_fusion,
      {"megatron-lm: the router scores and chooses in one kernel of TransformerEngine, and so does "
       "its balancing loss",
       {{"--moe-router-fusion", "true"}}});
  visit("moe_grouped_gemm",
        training.moe_grouped_gemm,
        {"the products of all experts of a rank are issued together, not expert by expert",
         {{"--moe-grouped-gemm", "true"},
          ours({"--no-moe-grouped-gemm", "false", "experts run one after another"})}});
  visit("moe_expert_capacity_factor",
        training.moe_expert_capacity_factor,
        {"capacity of an expert for the tokens of a rank, as a factor of the mean; further tokens "
         "are dropped; auto: no token is dropped",
         {{"--moe-expert-capacity-factor"}}});
  visit("moe_pad_expert_input_to_capacity",
        training.moe_pad_expert_input_to_capacity,
        {"pad the tokens of each expert to its capacity",
         {{"--moe-pad-expert-input-to-capacity", "true"}}});
}

/// Experts in fused kernels, with memory of a fixed size for the tokens that a rank gets.
template <class Visitor>
void visit_fused_experts(Visitor& visit, TrainingConfig& training) {
  visit("use_transformer_engine_op_fuser",
        training.use_transformer_engine_op_fuser,
        {"megatron-lm: an expert layer's products, activation and casts are fused kernels of "
         "cuDNN, as with NVTE_CUTEDSL_FUSED_GROUPED_MLP=1; mxfp8, on Blackwell",
         {{"--use-transformer-engine-op-fuser", "true"}}});
  visit("moe_mlp_glu_interleave_size",
        training.moe_mlp_glu_interleave_size,
        {"columns of gate and value that follow each other in an expert's first weight; the fused "
         "kernels need 32; 0: all of the gate, then all of the value",
         Range{0, 1024},
         {{"--moe-mlp-glu-interleave-size"}}});
  visit("moe_expert_rank_capacity_factor",
        training.moe_expert_rank_capacity_factor,
        {"tokens that a rank's experts have memory for, as a factor of the mean, so that the host "
         "need not wait for their number; auto: as many as come",
         {{"--moe-expert-rank-capacity-factor"}}});
  visit("moe_paged_stash",
        training.moe_paged_stash,
        {"what expert layers keep for the backward goes to pages that only the tokens that came "
         "fill",
         {{"--moe-paged-stash", "true"}}});
  visit("moe_paged_stash_page_size",
        training.moe_paged_stash_page_size,
        {"tokens of a page", Range{1, 1e9}, {{"--moe-paged-stash-page-size"}}});
  visit("moe_paged_stash_buffer_size_factor_cuda",
        training.moe_paged_stash_buffer_size_factor_cuda,
        {"the GPU's pages, as a factor of the mean of tokens; negative: of those that came in the "
         "first iteration",
         {{"--moe-paged-stash-buffer-size-factor-cuda"}}});
  visit("moe_paged_stash_buffer_size_factor_cpu",
        training.moe_paged_stash_buffer_size_factor_cpu,
        {"the same of page-locked memory of the host for tokens beyond these; 0: none",
         {{"--moe-paged-stash-buffer-size-factor-cpu"}}});
}

}  // namespace estimator
