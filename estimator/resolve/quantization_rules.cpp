#include <fmt/format.h>

#include <algorithm>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/quantization.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

std::string fp8_recipe_of(const Plan& plan) {
  return fmt::format("training.fp8_recipe = {}", to_string(plan.training.fp8_recipe));
}

int64_t bits_of(const Plan& plan) { return quantization_of(plan.training).bits; }

void check_quantizing_layers(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  rules.require(traits_of(t.framework).transformer_engine &&
                    t.transformer_impl == TransformerImpl::kTransformerEngine,
                fmt::format("only TransformerEngine's layers multiply in {} bits", bits_of(plan)),
                fmt::format("{}, training.framework = {}, training.transformer_impl = {}",
                            quantized_format(t),
                            to_string(t.framework),
                            to_string(t.transformer_impl)),
                "use --framework megatron-lm with --transformer-impl transformer_engine, or leave "
                "the format out");
  rules.require(t.fp8_format == Fp8Format::kNone || t.fp4_format == Fp4Format::kNone,
                "layers multiply in 8 bits or in 4",
                fmt::format("training.fp8_format = {}, training.fp4_format = {}",
                            to_string(t.fp8_format),
                            to_string(t.fp4_format)),
                "give one of --fp8-format and --fp4-format");
  // NVFP4Quantizer::quantize_impl in transformer_engine/pytorch/csrc/quantizer.cpp
  rules.require(bits_of(plan) != 4 || t.dtype == Dtype::kBf16,
                "the Hadamard transform before 4 bits is for bf16",
                fmt::format("{}, training.dtype = {}", quantized_format(t), to_string(t.dtype)),
                "use --bf16");
  // forward() of MultiTokenPredictionLayer in megatron/core/transformer/multi_token_prediction.py
  rules.require(
      bits_of(plan) != 4 || !plan.model.predicts_more_tokens(),
      "layers that predict further tokens stay in 16 bits beside products in 4 bits, which "
      "is not supported",
      fmt::format("{}, model.mtp_num_layers = {}", quantized_format(t), plan.model.mtp_num_layers),
      "use --mtp-num-layers 0, or --fp8-format e4m3 --fp8-recipe mxfp8");
}

/// __post_init__ of TransformerConfig in megatron/core/transformer/transformer_config.py: what is
/// computed again is quantized again, by layers that keep it in 16 bits (set_save_original_input).
void check_recomputed_modules(Rules& rules) {
  using enum RecomputeModule;
  const Plan& plan = rules.plan();
  for (const RecomputeModule module : {kNorms, kExpertActivation}) {
    rules.require(
        quantization_of(plan.training).finds_scale || !recomputes(plan, module),
        "the recipe delayed cannot quantize again what is computed again",
        fmt::format("{}, training.recompute_modules: {}", fp8_recipe_of(plan), to_string(module)),
        fmt::format("use --fp8-recipe tensorwise, or do not recompute {}", to_string(module)));
  }
}

/// Compute capability 8.9: Ada; 9.0: Hopper; 10: Blackwell; 12: that of workstations.
void check_eight_bit_gpu(Rules& rules, const Gpu& gpu) {
  const Plan& plan = rules.plan();
  const QuantizationTraits& traits = quantization_of(plan.training);
  const double capability = gpu.capability();
  rules.require(
      capability >= QuantizationTraits().first_gpu,
      "the GPU has no 8-bit products",
      fmt::format("{}, cluster.gpu = {}", quantized_format(plan.training), plan.cluster.gpu),
      "use a GPU from Hopper on, or leave fp8_format out");
  rules.require(
      capability >= traits.first_gpu && capability < traits.end_gpu,
      fmt::format("the GPU has no 8-bit products with a scale for each {} elements", traits.block),
      fmt::format("{}, cluster.gpu = {}", fp8_recipe_of(plan), plan.cluster.gpu),
      "use --fp8-recipe tensorwise, on B200, GB200, B300, GB300 and VR200 mxfp8, on Hopper "
      "blockwise");
}

void check_gpu(Rules& rules) {
  const Plan& plan = rules.plan();
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  if (gpu == nullptr) return;
  if (bits_of(plan) == 8) return check_eight_bit_gpu(rules, *gpu);
  rules.require(
      gpu->peak_flops_per_second.fp4.has_value(),
      "the GPU has no 4-bit products of TransformerEngine",
      fmt::format("{}, cluster.gpu = {}", quantized_format(plan.training), plan.cluster.gpu),
      "use a B200, GB200, B300, GB300 or VR200, or leave fp4_format out");
}

void check_shapes(Rules& rules) {
  const Plan& plan = rules.plan();
  const QuantizationTraits& traits = quantization_of(plan.training);
  const ModelConfig& m = plan.model;
  const int64_t tensor = plan.parallelism.tensor;
  const int64_t gathered = plan.parallelism.sequence_parallel ? traits.gathered_multiple : 1;
  const int64_t of_rows = std::max(traits.token_multiple, gathered);
  const int64_t of_gathered = std::max(traits.column_multiple, gathered);
  const int64_t cut = plan.parallelism.sequence_parallel ? tensor : 1;
  const int64_t rows =
      plan.sequence_length() / plan.parallelism.context / cut * plan.training.micro_batch_size;
  rules.require(rows % of_rows == 0,
                fmt::format("{}-bit products need a multiple of {} tokens", traits.bits, of_rows),
                fmt::format("a rank has {} tokens of a micro-batch", rows),
                "change the sequence, the micro-batch, or over how many ranks they are cut");
  const auto check = [&](int64_t columns, int64_t multiple, const std::string& key) {
    rules.require(
        columns % multiple == 0,
        fmt::format("{}-bit products need widths that are multiples of {}", traits.bits, multiple),
        fmt::format("{} gives a rank matrices of {} columns", key, columns),
        "use another one, or fewer tensor ranks");
  };
  const auto width = [&](int64_t columns, const std::string& key) {
    check(columns, traits.column_multiple, key);
  };
  check(m.hidden_size, of_gathered, "model.hidden_size");
  width(m.ffn_hidden_size / tensor, "model.ffn_hidden_size");
  width(m.num_attention_heads * m.value_width() / tensor, "model.num_attention_heads");
  if (m.multi_latent_attention) {
    check(m.q_lora_rank, of_gathered, "model.q_lora_rank");  // 0: no such latent
    check(m.kv_lora_rank, of_gathered, "model.kv_lora_rank");
  }
  if (m.predicts_more_tokens()) width(m.hidden_size / tensor, "model.hidden_size");
  if (!m.has_experts()) return;
  width(m.moe_ffn_hidden_size / plan.parallelism.expert_tensor, "model.moe_ffn_hidden_size");
  width(m.moe_shared_expert_intermediate_size / tensor,
        "model.moe_shared_expert_intermediate_size");
}

void check_unused_recipe(Rules& rules) {
  rules.require(rules.plan().training.fp8_recipe == TrainingConfig().fp8_recipe,
                "the key is only for products in 8 bits",
                fp8_recipe_of(rules.plan()) + ", training.fp8_format = none",
                "add --fp8-format hybrid, or leave fp8_recipe out");
}

/// validate_args in megatron/training/arguments.py
struct QuantizedWeights {
  const char* key;
  bool is_set, has_format;
  int bits;
  const char* flag;
};

void check_quantized_weights(Rules& rules, const QuantizedWeights& weights) {
  if (!weights.is_set) return;
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  const std::string key = weights.key, format = weights.bits == 8 ? "fp8" : "fp4";
  rules.require(weights.has_format,
                fmt::format("{} keeps the weights of {}-bit products", key, weights.bits),
                fmt::format("training.{}, training.{}_format = none", key, format),
                fmt::format("add {}, or leave {} out", weights.flag, key));
  rules.require(plan.parallelism.zero_stage == 1 && t.optimizer == Optimizer::kAdamw &&
                    !t.optimizer_cpu_offload,
                fmt::format("parameters in {} bits need the distributed optimizer with AdamW on "
                            "the GPU",
                            weights.bits),
                fmt::format("training.{}, parallelism.zero_stage = {}, "
                            "training.optimizer = {}, training.optimizer_cpu_offload = {}",
                            key,
                            plan.parallelism.zero_stage.value(),
                            to_string(t.optimizer),
                            t.optimizer_cpu_offload),
                fmt::format("add --use-distributed-optimizer, or leave {} out", key));
  rules.require(quantization_of(t).weights_alone,
                "parameters in 8 bits are not supported with scales of blocks of 128 yet",
                fmt::format("training.{}, {}", key, fp8_recipe_of(plan)),
                fmt::format("use --fp8-recipe tensorwise, or leave {} out", key));
}

constexpr const char* kAttentionKey = "training.fp8_dot_product_attention, ";

/// get_fp8_recipe in megatron/core/fp8_utils.py hands it to two recipes; combine_and_quantize in
/// transformer_engine/pytorch/attention/dot_product_attention/utils.py has the shapes.
void check_quantized_attention(Rules& rules) {
  const Plan& plan = rules.plan();
  const ModelConfig& m = plan.model;
  const TrainingConfig& t = plan.training;
  if (!t.fp8_dot_product_attention) return;
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds, what, kAttentionKey + where, help);
      };
  require(multiplies_in_mxfp8(t),
          "attention in 8 bits is supported with MXFP8 alone yet",
          quantized_format(t) + ", fp8_recipe = " + to_string(t.fp8_recipe),
          "add --fp8-format e4m3 --fp8-recipe mxfp8, or leave fp8_dot_product_attention out");
  require(t.attention == Attention::kFused,
          "attention in 8 bits is cuDNN's",
          "attention = " + to_string(t.attention.value()),
          "use --attention-backend fused, or leave fp8_dot_product_attention out");
  require(plan.parallelism.context == 1 && m.sliding_window == 0 && !m.has_sinks() &&
              m.attention_dropout == 0,
          "attention in 8 bits is not supported with context ranks, windows, sinks and dropout yet",
          fmt::format("parallelism.context = {}, model.sliding_window = {}, softmax_type = {}, "
                      "attention_dropout = {}",
                      plan.parallelism.context,
                      m.sliding_window,
                      to_string(m.softmax_type),
                      m.attention_dropout),
          "leave fp8_dot_product_attention out");
  constexpr int64_t kRows = 128, kWidths = 32;
  require(plan.sequence_length() % kRows == 0 && m.key_width() % kWidths == 0 &&
              m.value_width() % kWidths == 0,
          "attention in MXFP8 needs a multiple of 128 tokens, and heads whose widths are multiples "
          "of 32",
          fmt::format("training.sequence_length = {}, heads of {} and {}",
                      plan.sequence_length(),
                      m.key_width(),
                      m.value_width()),
          "change them, or leave fp8_dot_product_attention out");
}

/// __post_init__ in megatron/core/transformer/transformer_config.py, and
/// TELMHeadColumnParallelLinear in megatron/core/extensions/transformer_engine.py.
void check_quantized_head(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.fp8_output_proj) return;
  rules.require(
      multiplies_in_mxfp8(t),
      "the output layer multiplies in 8 bits only with MXFP8",
      fmt::format("training.fp8_output_proj, {}, {}", quantized_format(t), fp8_recipe_of(plan)),
      "add --fp8-format e4m3 --fp8-recipe mxfp8, or leave fp8_output_proj out");
  rules.require(!plan.model.tie_embeddings && !plan.parallelism.defer_embedding_wgrad_compute,
                "an output layer in 8 bits has a weight of its own, whose gradient is not deferred",
                "training.fp8_output_proj, model.tie_embeddings or "
                "parallelism.defer_embedding_wgrad_compute",
                "leave fp8_output_proj out");
}

}  // namespace

void check_quantization(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const bool in_eight = t.fp8_format != Fp8Format::kNone,
             in_four = t.fp4_format != Fp4Format::kNone;
  check_quantized_weights(
      rules, {"fp8_param_gather", t.fp8_param_gather, in_eight, 8, "--fp8-format hybrid"});
  check_quantized_weights(
      rules, {"fp4_param_gather", t.fp4_param_gather, in_four, 4, "--fp4-format e2m1"});
  if (!in_eight) check_unused_recipe(rules);
  check_quantized_attention(rules);
  check_quantized_head(rules);
  if (!quantizes(t)) return;
  check_quantizing_layers(rules);
  check_recomputed_modules(rules);
  check_gpu(rules);
  check_shapes(rules);
}

}  // namespace estimator
