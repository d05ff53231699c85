#include "estimator/resolve/subject_rules.h"

#include <fmt/ranges.h>

#include "estimator/base/text.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

constexpr std::size_t kMostDigits = 9;

bool is_layer_count(const std::string& option) {
  return option.size() <= kMostDigits && is_digits(option);
}

void check_recompute_modules(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (t.recompute_modules.empty()) return;
  const std::string named =
      fmt::format("training.recompute_modules = {}", fmt::join(t.recompute_modules, ","));
  rules.require(t.framework == Framework::kMegatronLm,
                "only Megatron-LM recomputes chosen modules",
                fmt::format("{}, training.framework = {}", named, to_string(t.framework)),
                "leave it out, or use --framework megatron-lm");
  for (const std::string& module : t.recompute_modules) {
    rules.require(value_named<RecomputeModule>(module).has_value(),
                  "a module that cannot be recomputed",
                  fmt::format("training.recompute_modules: {}", module),
                  "use core_attn, mlp, moe, shared_experts, layernorm, moe_act or mla_up_proj");
  }
  // The MLP's bias is an output of what is run again, and its gradient runs it again without end
  // (CheckpointFunction in megatron/core/tensor_parallel/random.py).
  rules.require(!plan.model.add_bias_linear || !recomputes(plan, RecomputeModule::kMlp),
                "Megatron-LM fails where it runs an MLP with biases again",
                named + ", model.add_bias_linear = true",
                "add --disable-bias-linear, or leave out mlp");
  const bool grouped = !plan.model.has_experts() || t.moe_grouped_gemm;
  rules.require(grouped || !recomputes(plan, RecomputeModule::kExpertActivation),
                "only grouped experts recompute their activation",
                named + ", training.moe_grouped_gemm = false",
                "add --moe-grouped-gemm, or leave out moe_act");
  rules.require(plan.model.multi_latent_attention || !recomputes(plan, RecomputeModule::kLatentUp),
                "only multi-latent attention has an up projection",
                named,
                "leave out mla_up_proj");
}

/// MultiTokenPredictionLayer._checkpointed_forward in
/// megatron/core/transformer/multi_token_prediction.py asserts the last.
void check_recompute_method(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const bool is_uniform = t.recompute_method == RecomputeMethod::kUniform;
  if (is_uniform && t.recompute_num_layers == 1) return;
  const std::string said = fmt::format("training.recompute_method = {}, recompute_num_layers = {}",
                                       to_string(t.recompute_method),
                                       t.recompute_num_layers);
  rules.require(t.framework == Framework::kMegatronLm,
                "only Megatron-LM recomputes some of the layers, or several as one",
                fmt::format("{}, training.framework = {}", said, to_string(t.framework)),
                "leave it out, or use --framework megatron-lm");
  rules.require(t.recompute == Recompute::kFull,
                "the method is one of full recompute",
                fmt::format("{}, training.recompute = {}", said, to_string(t.recompute)),
                "add --recompute-granularity full, or leave it out");
  rules.require(
      !is_uniform || !rules.plan().model.predicts_more_tokens(),
      "Megatron-LM recomputes layers that predict more tokens one by one",
      fmt::format("{}, model.mtp_num_layers = {}", said, rules.plan().model.mtp_num_layers),
      "use --recompute-num-layers 1, or --recompute-method block");
}

/// As Megatron-LM asks for (validate_args in megatron/training/arguments.py, TransformerConfig in
/// megatron/core/transformer/transformer_config.py). DeepSpeed calls it partition_activations.
void check_saved_activations(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.distribute_saved_activations) return;
  const auto require =
      [&](bool holds, const std::string& what, const std::string& where, const std::string& help) {
        rules.require(holds, what, "training.distribute_saved_activations" + where, help);
      };
  require(traits_of(t.framework).divides_saved_inputs,
          "the framework does not divide what it keeps for recomputation",
          ", training.framework = " + to_string(t.framework),
          "leave it out, or use --framework megatron-lm or megatron-deepspeed");
  require(t.recompute == Recompute::kFull,
          "only the inputs of whole layers are divided among the tensor ranks",
          ", training.recompute = " + to_string(t.recompute),
          "add --recompute-granularity full, or leave it out");
  require(!plan.parallelism.sequence_parallel,
          "sequence parallelism divides a layer's input already",
          " with parallelism.sequence_parallel",
          "leave out one of them");
  require(!plan.model.predicts_more_tokens(),
          "Megatron-LM fails with it: the layers that predict more tokens join their inputs, which "
          "were divided",
          fmt::format(" with model.mtp_num_layers = {}", plan.model.mtp_num_layers),
          "leave out one of them");
  const int64_t elements = plan.local_sequence() * t.micro_batch_size * plan.model.hidden_size;
  require(
      elements % plan.parallelism.tensor == 0,
      "a layer's input does not divide by the tensor parallel size",
      fmt::format(
          ": {} elements, parallelism.tensor = {}", with_commas(elements), plan.parallelism.tensor),
      "leave it out, or use another tensor parallel size");
}

}  // namespace

void check_recompute(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  check_recompute_modules(rules);
  check_recompute_method(rules);
  check_saved_activations(rules);
  if (t.selective_ac_option == kSelectiveByOperator) return;
  const std::string option =
      fmt::format("training.selective_ac_option = {}", t.selective_ac_option);
  rules.require(traits_of(t.framework).selective_by_operator,
                "only TorchTitan chooses what selective recompute means",
                fmt::format("{}, training.framework = {}", option, to_string(t.framework)),
                "leave it out, or use --framework torchtitan");
  rules.require(t.recompute == Recompute::kSelective,
                "the key is only for selective recompute",
                fmt::format("{}, training.recompute = {}", option, to_string(t.recompute)),
                "add --recompute-granularity selective, or leave it out");
  rules.require(is_layer_count(t.selective_ac_option),
                "selective recompute is by operator or of every Nth layer",
                option,
                "use op, or a number of layers: 2 recomputes every second one, 0 all");
}

}  // namespace estimator
