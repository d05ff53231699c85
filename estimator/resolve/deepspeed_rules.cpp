#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

void check_keys_of_others(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const ParallelConfig defaults;
  const auto require = [&](bool is_default, const char* key) {
    rules.require(is_default,
                  "the key belongs to DeepSpeed's engine",
                  fmt::format("parallelism.{}, training.framework = {}",
                              key,
                              to_string(rules.plan().training.framework)),
                  "leave it out, or use --framework deepspeed");
  };
  require(p.reduce_bucket_size == 0, "reduce_bucket_size");
  require(!p.overlap_comm, "overlap_comm");
  require(p.stage3_prefetch_bucket_size == 0, "stage3_prefetch_bucket_size");
  require(p.stage3_param_persistence_threshold == 0, "stage3_param_persistence_threshold");
  require(p.stage3_max_live_parameters == defaults.stage3_max_live_parameters,
          "stage3_max_live_parameters");
  require(p.stage3_max_reuse_distance == defaults.stage3_max_reuse_distance,
          "stage3_max_reuse_distance");
  require(p.sub_group_size == defaults.sub_group_size, "sub_group_size");
}

}  // namespace

void check_deepspeed(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  if (!traits_of(plan.training.framework).deepspeed_engine) return check_keys_of_others(rules);
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds, what, "training.framework = deepspeed, " + where, help);
      };
  require(plan.training.dtype != Dtype::kFp32,
          "DeepSpeed's engine is supported for 16-bit parameters only",
          "training.dtype = fp32",
          "use bf16 or fp16");
  require(plan.training.optimizer == Optimizer::kAdamw,
          "DeepSpeed's engine is supported with AdamW only",
          fmt::format("training.optimizer = {}", to_string(plan.training.optimizer)),
          "use adamw");
  require(p.zero_stage >= 1,
          "DeepSpeed's engine without ZeRO is not supported yet",
          fmt::format("parallelism.zero_stage = {}", p.zero_stage.value()),
          "use --zero-stage 1, 2 or 3");
  require(p.zero_stage < 3 || !plan.model.add_bias_linear,
          "ZeRO stage 3 is supported for models without biases that a layer's caller adds",
          "model.add_bias_linear",
          "use --zero-stage 2; `onerank exec` runs the program itself");
  require(p.zero_stage < 3 || plan.model.position_embedding != PositionEmbedding::kLearnedAbsolute,
          "ZeRO stage 3 is supported for models without learned positions",
          "model.position_embedding = learned_absolute",
          "use --zero-stage 2; `onerank exec` runs the program itself");
  require(!p.overlap_grad_reduce && !p.overlap_param_gather,
          "the keys overlap_grad_reduce and overlap_param_gather belong to other frameworks",
          "parallelism.overlap_grad_reduce or overlap_param_gather",
          "use --overlap-comm");
}

}  // namespace estimator
