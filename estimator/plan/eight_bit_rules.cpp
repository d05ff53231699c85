#include <fmt/format.h>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

std::string fp8_format_of(const Plan& plan) {
  return fmt::format("training.fp8_format = {}", to_string(plan.training.fp8_format));
}

std::string fp8_recipe_of(const Plan& plan) {
  return fmt::format("training.fp8_recipe = {}", to_string(plan.training.fp8_recipe));
}

void check_eight_bit_layers(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  rules.require(traits_of(t.framework).transformer_engine &&
                    t.transformer_impl == TransformerImpl::kTransformerEngine,
                "only TransformerEngine's layers multiply in 8 bits",
                fmt::format("{}, training.framework = {}, training.transformer_impl = {}",
                            fp8_format_of(plan),
                            to_string(t.framework),
                            to_string(t.transformer_impl)),
                "use --framework megatron-lm with --transformer-impl transformer_engine, or leave "
                "fp8_format out");
  rules.require(
      t.fp8_recipe != Fp8Recipe::kDelayed || !recomputes(plan, RecomputeModule::kExpertActivation),
      "the recipe delayed cannot quantize again what is computed again",
      fmt::format("{}, training.recompute_modules: {}",
                  fp8_recipe_of(plan),
                  to_string(RecomputeModule::kExpertActivation)),
      "use --fp8-recipe tensorwise, or do not recompute moe_act");
}

/// The others hand inputs to layers that are kept in 16 bits then (set_save_original_input in
/// megatron/core/transformer/transformer_layer.py), or do not go with the recipe delayed.
void check_recomputed_modules(Rules& rules) {
  using enum RecomputeModule;
  const Plan& plan = rules.plan();
  for (const RecomputeModule module : {kNorms, kLatentUp}) {
    rules.require(
        !recomputes(plan, module),
        "in 8 bits not every module can be recomputed",
        fmt::format("{}, training.recompute_modules: {}", fp8_format_of(plan), to_string(module)),
        "recompute core_attn or mlp alone, or leave fp8_format out");
  }
}

/// Compute capability 8.9: Ada; 9.0: Hopper; 10: Blackwell; 12: that of workstations
/// (check_fp8_support and check_mxfp8_support in transformer_engine/pytorch/quantization.py).
void check_eight_bit_gpu(Rules& rules) {
  constexpr double kFirst = 8.9, kFirstOfBlocks = 10, kFirstWithoutBlocks = 12;
  const Plan& plan = rules.plan();
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  if (gpu == nullptr) return;
  const double capability = gpu->capability();
  rules.require(capability >= kFirst,
                "the GPU has no 8-bit products",
                fmt::format("{}, cluster.gpu = {}", fp8_format_of(plan), plan.cluster.gpu),
                "use a GPU from Hopper on, or leave fp8_format out");
  rules.require(plan.training.fp8_recipe != Fp8Recipe::kMxfp8 ||
                    (capability >= kFirstOfBlocks && capability < kFirstWithoutBlocks),
                "the GPU has no 8-bit products with a scale for each 32 elements",
                fmt::format("{}, cluster.gpu = {}", fp8_recipe_of(plan), plan.cluster.gpu),
                "use a B200, GB200, B300 or GB300, or --fp8-recipe tensorwise");
}

/// assert_dim_for_fp8_exec in transformer_engine/pytorch/utils.py; is_quantizable in
/// tensor/mxfp8_tensor.py.
void check_eight_bit_shapes(Rules& rules) {
  const Plan& plan = rules.plan();
  const bool has_blocks = plan.training.fp8_recipe == Fp8Recipe::kMxfp8;
  const int64_t of_rows = has_blocks ? 32 : 8, of_columns = has_blocks ? 32 : 16;
  const ModelConfig& m = plan.model;
  const int64_t tensor = plan.parallelism.tensor;
  const int64_t cut = plan.parallelism.sequence_parallel ? tensor : 1;
  const int64_t rows =
      plan.sequence_length() / plan.parallelism.context / cut * plan.training.micro_batch_size;
  rules.require(rows % of_rows == 0,
                fmt::format("8-bit products need a multiple of {} tokens", of_rows),
                fmt::format("a rank has {} tokens of a micro-batch", rows),
                "change the sequence, the micro-batch, or over how many ranks they are cut");
  const auto width = [&](int64_t columns, const std::string& key) {
    rules.require(columns % of_columns == 0,
                  fmt::format("8-bit products need widths that are multiples of {}", of_columns),
                  fmt::format("{} gives a rank matrices of {} columns", key, columns),
                  "use another one, or fewer tensor ranks");
  };
  width(m.hidden_size, "model.hidden_size");
  width(m.ffn_hidden_size / tensor, "model.ffn_hidden_size");
  width(m.num_attention_heads * m.value_width() / tensor, "model.num_attention_heads");
  if (m.multi_latent_attention) {
    width(m.q_lora_rank, "model.q_lora_rank");  // 0: no such latent
    width(m.kv_lora_rank, "model.kv_lora_rank");
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
void check_parameters_in_eight_bits(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.fp8_param_gather) return;
  rules.require(t.fp8_format != Fp8Format::kNone,
                "fp8_param_gather keeps the weights of 8-bit products",
                "training.fp8_param_gather, training.fp8_format = none",
                "add --fp8-format hybrid, or leave fp8_param_gather out");
  rules.require(plan.parallelism.zero_stage == 1 && t.optimizer == Optimizer::kAdamw &&
                    !t.optimizer_cpu_offload,
                "parameters in 8 bits need the distributed optimizer with AdamW on the GPU",
                fmt::format("training.fp8_param_gather, parallelism.zero_stage = {}, "
                            "training.optimizer = {}, training.optimizer_cpu_offload = {}",
                            plan.parallelism.zero_stage.value(),
                            to_string(t.optimizer),
                            t.optimizer_cpu_offload),
                "add --use-distributed-optimizer, or leave fp8_param_gather out");
}

}  // namespace

void check_eight_bits(Rules& rules) {
  check_parameters_in_eight_bits(rules);
  if (rules.plan().training.fp8_format == Fp8Format::kNone) return check_unused_recipe(rules);
  check_eight_bit_layers(rules);
  check_recomputed_modules(rules);
  check_eight_bit_gpu(rules);
  check_eight_bit_shapes(rules);
}

}  // namespace estimator
