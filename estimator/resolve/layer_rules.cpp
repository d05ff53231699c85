#include <fmt/format.h>

#include <algorithm>

#include "estimator/plan/attention_choice.h"
#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

void check_parallel_residual(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  const Framework framework = rules.plan().training.framework;
  rules.require(m.parallel_residual || !m.tied_layernorm,
                "one norm for attention and MLP needs both to read the same input",
                "model.tied_layernorm without model.parallel_residual",
                "add --parallel-residual, or leave out --tied-layernorm");
  if (!m.parallel_residual) return;
  rules.require(
      traits_of(framework).parallel_residual,
      "attention and MLP in parallel are not supported for this framework",
      "model.parallel_residual, training.framework = " + to_string(framework),
      "use training.framework = megatron-deepspeed (GPT-NeoX), transformers, deepspeed or plain");
  rules.require(!m.has_experts(),
                "attention and MLP in parallel do not work with experts yet",
                fmt::format("model.parallel_residual, model.num_experts = {}", m.num_experts),
                "leave out one of them");
}

void check_variants(Rules& rules) {
  const Framework framework = rules.plan().training.framework;
  if (traits_of(framework).layer_variants) return;
  for (const LayerVariant& variant : rules.plan().model.layer_variants()) {
    rules.require(
        false,
        fmt::format("{} are not supported for this framework", variant.what),
        fmt::format("model.{}, training.framework = {}", variant.key, to_string(framework)),
        "use training.framework = transformers, deepspeed or plain");
  }
}

void check_norms(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(
      m.norm_parameters == NormParameters::kAll || m.normalization == Normalization::kLayerNorm,
      "an RMSNorm has no bias, and none without a weight is supported",
      fmt::format("model.normalization = RMSNorm, norm_parameters = {}",
                  to_string(m.norm_parameters)),
      "leave norm_parameters out, or use --normalization LayerNorm");
  rules.require(
      !m.has_norms_after() || !m.parallel_residual,
      "attention and MLP in parallel have norms before them alone",
      fmt::format("model.parallel_residual, norm_position = {}", to_string(m.norm_position)),
      "leave out one of them");
  rules.require(m.qk_layernorm || !m.qk_layernorm_whole,
                "the key says over what the norms of queries and keys are",
                "model.qk_layernorm_whole without model.qk_layernorm",
                "add --qk-layernorm, or leave it out");
  const int64_t tensor = rules.plan().parallelism.tensor;
  rules.require(!m.qk_layernorm_whole || tensor == 1,
                "a norm over all heads does not work with heads on several tensor ranks yet",
                fmt::format("model.qk_layernorm_whole, parallelism.tensor = {}", tensor),
                "use a tensor parallel size of 1");
}

/// A number for each n-th layer, or one of 0 and 1 for each layer.
void check_pattern(Rules& rules, const std::vector<int64_t>& freq, const char* key) {
  const int64_t layers = rules.plan().model.num_layers;
  const bool is_list =
      static_cast<int64_t>(freq.size()) == layers &&
      std::all_of(freq.begin(), freq.end(), [](int64_t layer) { return layer == 0 || layer == 1; });
  rules.require(freq.size() == 1 || is_list,
                "which layers are meant is not clear",
                fmt::format("model.{} has {} numbers, num_layers = {}", key, freq.size(), layers),
                "give one number n for each n-th layer, or a 0 or a 1 for each layer");
}

/// no_rope_freq of TransformerConfig in megatron/core/transformer/transformer_config.py.
void check_layers_without_positions(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  check_pattern(rules, m.no_rope_freq, "no_rope_freq");
  const bool has_positions =
      m.position_embedding == PositionEmbedding::kRope && !m.multi_latent_attention;
  rules.require(has_positions || m.no_rope_freq == ModelConfig().no_rope_freq,
                "the key says which layers lack the rotary positions of the others",
                "model.no_rope_freq, model.position_embedding = " + to_string(m.position_embedding),
                "leave it out, or use --position-embedding-type rope without latent attention");
}

/// What a window does not work with; frameworks without masks and kernels for it have sequences
/// that are not longer. Over context ranks TransformerEngine has it by all-to-all
/// (attn_forward_func_with_cp in
/// transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py).
void check_window(Rules& rules) {
  const Plan& plan = rules.plan();
  const int64_t window = plan.model.sliding_window;
  check_pattern(rules, plan.model.window_attn_skip_freq, "window_attn_skip_freq");
  if (!plan.exceeds_window()) return;
  const auto require = [&](bool holds, const std::string& where) {
    rules.require(
        holds,
        "attention in a window that is shorter than the sequence is not supported here",
        fmt::format("model.sliding_window = {}, training.sequence_length = {}, {}",
                    window,
                    plan.sequence_length(),
                    where),
        "use --attention-backend fused --attention-dropout 0 with Megatron-LM, over context ranks "
        "with --cp-comm-type a2a; training.framework = transformers, deepspeed or plain, with one "
        "rank for a sequence; "
        "or --sliding-window 0: attention to the whole sequence, which is slower");
  };
  const ParallelConfig& p = plan.parallelism;
  const bool has_kernel = has_window_kernel(plan);
  require(has_kernel || traits_of(plan.training.framework).window_masks,
          fmt::format("training.framework = {}, attention = {}, model.attention_dropout = {}",
                      to_string(plan.training.framework.value()),
                      to_string(plan.training.attention.value()),
                      plan.model.attention_dropout));
  require(p.context == 1 || (has_kernel && p.context_comm == ContextComm::kAllToAll),
          fmt::format(
              "parallelism.context = {}, context_comm = {}", p.context, to_string(p.context_comm)));
  require(!plan.model.multi_latent_attention, "model.multi_latent_attention");
}

/// "Storing activation input in FP8 is supported only for SwiGLU" (__post_init__ in
/// megatron/core/transformer/transformer_config.py). What experts' weights are fused with, and what
/// TransformerEngine's fused kernels keep, is not built so.
void check_kept_activation(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.activation_func_fp8_input_store) return;
  rules.require(traits_of(t.framework).fused_gated_activation && t.bias_swiglu_fusion &&
                    plan.model.activation == Activation::kSwiglu && !plan.model.has_experts(),
                "only the fused SwiGLU of Megatron-LM's dense layers keeps its input in 8 bits",
                fmt::format("training.activation_func_fp8_input_store, training.framework = {}, "
                            "bias_swiglu_fusion = {}, model.activation = {}, num_experts = {}",
                            to_string(t.framework),
                            t.bias_swiglu_fusion,
                            to_string(plan.model.activation),
                            plan.model.num_experts),
                "use --swiglu in a dense model under megatron-lm, or leave it out");
}

/// What TransformerEngine's sinks work with (the same function, and get_attention_backend).
void check_sinks(Rules& rules) {
  const Plan& plan = rules.plan();
  if (!plan.model.has_sinks()) return;
  const TrainingConfig& t = plan.training;
  const ParallelConfig& p = plan.parallelism;
  const auto require = [&](bool holds, const std::string& where, const char* help) {
    rules.require(holds,
                  "attention with a learned number in each head's softmax is not supported here",
                  "model.softmax_type = learnable, " + where,
                  help);
  };
  require(traits_of(t.framework).softmax_offsets,
          "training.framework = " + to_string(t.framework.value()),
          "use training.framework = megatron-lm or plain, or --softmax-type vanilla");
  require(t.attention == Attention::kFused,
          "training.attention = " + to_string(t.attention.value()),
          "use --attention-backend fused");
  require(!t.deterministic_mode, "training.deterministic_mode", "leave it out");
  require(!plan.model.multi_latent_attention,
          "model.multi_latent_attention",
          "use --softmax-type vanilla");
  require(p.context == 1 || p.context_comm == ContextComm::kAllToAll,
          fmt::format(
              "parallelism.context = {}, context_comm = {}", p.context, to_string(p.context_comm)),
          "use --cp-comm-type a2a");
}

/// quick_geglu, and what goes with it: Megatron-LM fuses it in experts alone (forward() in
/// megatron/core/transformer/mlp.py).
void check_activation(Rules& rules) {
  const Plan& plan = rules.plan();
  const ModelConfig& m = plan.model;
  const bool is_quick = m.activation == Activation::kQuickGeglu;
  rules.require(is_quick || (m.activation_func_clamp_value == 0 && m.glu_linear_offset == 0),
                "the keys belong to the activation quick_geglu",
                fmt::format("model.activation_func_clamp_value = {}, glu_linear_offset = {}, "
                            "activation = {}",
                            m.activation_func_clamp_value,
                            m.glu_linear_offset,
                            to_string(m.activation)),
                "add --quick-geglu, or leave them out");
  if (!is_quick) return;
  const FrameworkTraits& framework = traits_of(plan.training.framework);
  rules.require(framework.quick_geglu,
                "the activation quick_geglu is not supported for this framework",
                "training.framework = " + to_string(plan.training.framework.value()),
                "use training.framework = megatron-lm or plain");
  const bool has_dense = m.expert_layers() < m.all_layers();
  rules.require(!framework.fused_gated_activation || !plan.training.bias_gelu_fusion ||
                    (!has_dense && m.moe_shared_expert_intermediate_size == 0),
                "Megatron-LM fuses quick_geglu in experts alone",
                "model.activation = quick_geglu, training.bias_gelu_fusion",
                "add --no-bias-gelu-fusion");
}

/// row_linear and column_linear in nanotron/parallel/tensor_parallel/functional.py.
void check_asynchronous_linear(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const Framework framework = rules.plan().training.framework;
  const auto check = [&](bool asked, const std::string& key) {
    if (!asked) return;
    rules.require(traits_of(framework).asynchronous_linear,
                  "only nanotron's linear layers gather their input in this way",
                  fmt::format("{}, training.framework = {}", key, to_string(framework)),
                  "leave it out, or use --framework nanotron");
    rules.require(
        p.sequence_parallel,
        "nanotron gathers inputs only in its mode REDUCE_SCATTER, which splits the sequence",
        key + " without parallelism.sequence_parallel",
        "add --sequence-parallel, or leave it out");
  };
  check(p.tp_linear_async_communication, "parallelism.tp_linear_async_communication");
  check(p.tp_recompute_allgather, "parallelism.tp_recompute_allgather");
}

/// What multi-token prediction is built for here, of what Megatron-LM can do.
void check_around_prediction(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds,
                      fmt::format("multi-token prediction does not work with {} yet", what),
                      "model.mtp_num_layers, " + where,
                      fmt::format("{}, or leave out --mtp-num-layers", help));
      };
  require(p.context == 1,
          "context parallelism",
          fmt::format("parallelism.context = {}", p.context),
          "use a context parallel size of 1");
  require(!p.divides_gradients(),
          "FSDP2",
          fmt::format("parallelism.zero_stage = {}", p.zero_stage.value()),
          "use --use-distributed-optimizer (ZeRO stage 1)");
  require(!p.defer_embedding_wgrad_compute,
          "weight gradients of the output layer that wait for the flush",
          "parallelism.defer_embedding_wgrad_compute",
          "leave out --defer-embedding-wgrad-compute");
  require(!p.tp_comm_overlap,
          "user buffers",
          "parallelism.tp_comm_overlap",
          "leave out --tp-comm-overlap");
}

void check_prediction(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  if (!m.predicts_more_tokens()) return;
  const Framework framework = rules.plan().training.framework;
  rules.require(traits_of(framework).multi_token_prediction,
                "multi-token prediction is not supported for this framework",
                "model.mtp_num_layers, training.framework = " + to_string(framework),
                "use training.framework = megatron-lm or plain");
  // validate_args in megatron/training/arguments.py
  rules.require(m.position_embedding != PositionEmbedding::kLearnedAbsolute,
                "Megatron-LM predicts no more tokens of sequences with learned positions",
                "model.mtp_num_layers, model.position_embedding = learned_absolute",
                "use --position-embedding-type rope");
  check_around_prediction(rules);
}

}  // namespace

void check_layers(Rules& rules) {
  check_parallel_residual(rules);
  check_variants(rules);
  check_norms(rules);
  check_layers_without_positions(rules);
  check_window(rules);
  check_sinks(rules);
  check_kept_activation(rules);
  check_activation(rules);
  check_prediction(rules);
  check_asynchronous_linear(rules);
}

}  // namespace estimator
