#include "estimator/plan/frameworks.h"
#include "estimator/plan/fused_experts.h"
#include "estimator/plan/quantization.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

constexpr const char* kFuserKey = "training.use_transformer_engine_op_fuser, ";
constexpr const char* kWithoutFuser = "leave out --use-transformer-engine-op-fuser";

/// Keys that mean nothing without others.
void check_keys_of_fused_experts(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const TrainingConfig usual;
  const auto unused = [&](bool is_default, const char* key, const char* needs) {
    rules.require(is_default,
                  fmt::format("the key is only for plans with {}", needs),
                  fmt::format("training.{} without {}", key, needs),
                  fmt::format("set training.{}, or leave it out", needs));
  };
  if (!t.use_transformer_engine_op_fuser) {
    constexpr const char* kFuser = "use_transformer_engine_op_fuser";
    unused(t.moe_mlp_glu_interleave_size == 0, "moe_mlp_glu_interleave_size", kFuser);
    unused(!t.moe_expert_rank_capacity_factor, "moe_expert_rank_capacity_factor", kFuser);
  }
  if (!t.moe_expert_rank_capacity_factor) {
    unused(!t.moe_paged_stash, "moe_paged_stash", "moe_expert_rank_capacity_factor");
  }
  if (t.moe_paged_stash) return;
  constexpr const char* kStash = "moe_paged_stash";
  unused(t.moe_paged_stash_page_size == usual.moe_paged_stash_page_size,
         "moe_paged_stash_page_size",
         kStash);
  unused(t.moe_paged_stash_buffer_size_factor_cuda == usual.moe_paged_stash_buffer_size_factor_cuda,
         "moe_paged_stash_buffer_size_factor_cuda",
         kStash);
  unused(t.moe_paged_stash_buffer_size_factor_cpu == usual.moe_paged_stash_buffer_size_factor_cpu,
         "moe_paged_stash_buffer_size_factor_cpu",
         kStash);
}

/// _is_fused_impl_supported of TEGroupedMLP (megatron/core/transformer/moe/experts.py), and
/// fuse_grouped_mlp_ops and validate_grouped_mlp_dims in
/// transformer_engine/pytorch/ops/fused/grouped_mlp.py of 2.17.
void check_fused_kernels(Rules& rules) {
  const Plan& plan = rules.plan();
  const ModelConfig& m = plan.model;
  const TrainingConfig& t = plan.training;
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds, what, kFuserKey + where, help);
      };
  require(m.has_experts() && t.moe_grouped_gemm,
          "fused kernels are supported of experts that run together alone",
          fmt::format(
              "model.num_experts = {}, moe_grouped_gemm = {}", m.num_experts, t.moe_grouped_gemm),
          kWithoutFuser);
  require(t.framework == Framework::kMegatronLm &&
              t.transformer_impl == TransformerImpl::kTransformerEngine,
          "the fused kernels of experts are TransformerEngine's, under Megatron-LM",
          fmt::format("framework = {}, transformer_impl = {}",
                      to_string(t.framework),
                      to_string(t.transformer_impl)),
          kWithoutFuser);
  require(multiplies_in_mxfp8(t),
          "the fused kernels of experts are supported in MXFP8 alone yet",
          quantized_format(t) + ", fp8_recipe = " + to_string(t.fp8_recipe),
          "add --fp8-format e4m3 --fp8-recipe mxfp8");
  require(t.fp8_param_gather && t.gradient_accumulation_fusion,
          "the fused kernels of experts are supported with weights in 8 bits, whose gradients they "
          "add up, alone yet",
          fmt::format("fp8_param_gather = {}, gradient_accumulation_fusion = {}",
                      t.fp8_param_gather,
                      t.gradient_accumulation_fusion),
          "add --fp8-param-gather");
  require(
      m.activation == Activation::kSwiglu && !m.has_mlp_bias(),
      "the fused kernels of experts are supported with SwiGLU and without biases alone yet",
      fmt::format(
          "model.activation = {}, add_bias_linear = {}", to_string(m.activation), m.has_mlp_bias()),
      kWithoutFuser);
  require(t.moe_mlp_glu_interleave_size == 32,
          "the fused kernels of experts need 32 columns of the gate and 32 of the value in turn",
          fmt::format("moe_mlp_glu_interleave_size = {}", t.moe_mlp_glu_interleave_size),
          "add --moe-mlp-glu-interleave-size 32");
  constexpr int64_t kMultiple = 64;
  require(
      m.hidden_size % kMultiple == 0 && m.moe_ffn_hidden_size % kMultiple == 0,
      "the fused kernels of experts need widths that are multiples of 64",
      fmt::format(
          "model.hidden_size = {}, moe_ffn_hidden_size = {}", m.hidden_size, m.moe_ffn_hidden_size),
      kWithoutFuser);
  require(plan.expert_tensor_size() == 1,
          "the fused kernels need whole experts",
          fmt::format("parallelism.expert_tensor = {}", plan.expert_tensor_size()),
          "use --expert-tensor-parallel-size 1");
}

/// __post_init__ of TransformerConfig (megatron/core/transformer/transformer_config.py); of the
/// dispatchers HybridEP's is built.
void check_fused_rows(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  rules.require(
      t.moe_token_dispatcher_type == TokenDispatcher::kFlex &&
          t.moe_flex_dispatcher_backend == FlexBackend::kHybridEp &&
          t.moe_expert_rank_capacity_factor,
      "the fused kernels of experts are supported with HybridEP and a capacity of a "
      "rank's experts alone yet",
      fmt::format("training.use_transformer_engine_op_fuser, "
                  "moe_token_dispatcher_type = {}, moe_flex_dispatcher_backend = {}{}",
                  to_string(t.moe_token_dispatcher_type),
                  to_string(t.moe_flex_dispatcher_backend),
                  t.moe_expert_rank_capacity_factor ? "" : ", no moe_expert_rank_capacity_factor"),
      "add --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
      "--moe-expert-rank-capacity-factor 1.5");
  const double factor = t.moe_expert_rank_capacity_factor.value_or(1);
  rules.require(factor >= 1,
                "tokens would be dropped, and the step run again with memory for all",
                fmt::format("training.moe_expert_rank_capacity_factor = {}", factor),
                "use at least 1");
  rules.require(!t.moe_pad_expert_input_to_capacity,
                "experts have a capacity each, or a rank has one for all of its own",
                "training.moe_expert_rank_capacity_factor, moe_pad_expert_input_to_capacity",
                "leave one of them out");
  rules.require(!recomputes(plan, RecomputeModule::kExpertActivation) &&
                    !recomputes(plan, RecomputeModule::kMoe) && t.recompute != Recompute::kFull,
                "the fused kernels of experts are not supported with recompute of experts yet",
                "training.use_transformer_engine_op_fuser, training.recompute",
                "recompute other modules (--recompute-granularity selective), or none");
}

/// Each expert's rows are padded; all must have a place.
void check_row_budget(Rules& rules) {
  const Plan& plan = rules.plan();
  if (!plan.training.sequence_length.is_known() || !plan.training.moe_expert_rank_capacity_factor) {
    return;
  }
  const int64_t own = plan.experts_of_rank();
  const int64_t of_expert = divide_up(mean_expert_rows(plan), own);
  const int64_t rows = own * round_up(of_expert, expert_row_multiple(plan.training));
  rules.require(rows <= *expert_row_budget(plan),
                "the padded rows of a rank's experts do not fit its capacity",
                fmt::format("training.moe_expert_rank_capacity_factor = {}: {} rows; {} experts, "
                            "each of {} rows in the mean and as many as make a multiple of {}",
                            *plan.training.moe_expert_rank_capacity_factor,
                            *expert_row_budget(plan),
                            own,
                            of_expert,
                            expert_row_multiple(plan.training)),
                "use a larger factor, or more expert ranks");
}

}  // namespace

void check_fused_experts(Rules& rules) {
  check_keys_of_fused_experts(rules);
  if (!rules.plan().training.use_transformer_engine_op_fuser) return;
  check_fused_kernels(rules);
  if (!rules.plan().model.has_experts()) return;
  check_fused_rows(rules);
  check_row_budget(rules);
}

}  // namespace estimator
