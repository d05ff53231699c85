#include <fmt/format.h>

#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

void check_mixed_precision(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const bool mixed = t.mixed_precision.value_or(false);
  rules.require(!mixed || traits_of(t.framework).mixed_precision,
                "only transformers' Trainer has this key",
                "training.mixed_precision, training.framework = " + to_string(t.framework),
                "leave it out, or use --framework transformers");
  rules.require(!mixed || t.dtype != Dtype::kFp32,
                "mixed precision computes in 16 bits",
                "training.mixed_precision, training.dtype = fp32",
                "use --bf16, or leave it out");
  // _unscale_grads_ of torch/amp/grad_scaler.py: "Attempting to unscale FP16 gradients."
  rules.require(
      mixed || t.dtype != Dtype::kFp16 || !traits_of(t.framework).mixed_precision,
      "the Trainer does not train a model that is in fp16 itself: its loss scaler refuses "
      "gradients in fp16",
      "training.dtype = fp16, training.mixed_precision = false",
      "leave out --no-mixed-precision, or use --bf16");
}

void check_decay_groups(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  rules.require(!t.decay_groups.value_or(false) || traits_of(t.framework).decay_groups,
                "only transformers' Trainer has this key",
                "training.decay_groups, training.framework = " + to_string(t.framework),
                "leave it out, or use --framework transformers or deepspeed");
}

/// The ways in which ranks could share the work, but that the framework's own here do not have.
void check_ranks(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const Framework framework = rules.plan().training.framework;
  const auto require_one = [&](int64_t ranks, const char* key) {
    rules.require(
        ranks == 1,
        "the framework is supported with data parallelism alone",
        fmt::format(
            "parallelism.{} = {}, training.framework = {}", key, ranks, to_string(framework)),
        "leave it out, or use --framework torchtitan or megatron-lm");
  };
  require_one(p.tensor, "tensor");
  require_one(p.pipeline, "pipeline");
  require_one(p.context, "context");
  rules.require(p.zero_stage != 1 || traits_of(framework).deepspeed_engine,
                "accelerate has DistributedDataParallel and FSDP2, no ZeRO stage 1 of its own",
                "parallelism.zero_stage = 1, training.framework = " + to_string(framework),
                "use --zero-stage 2 or 3 (FSDP2), or 0");
}

}  // namespace

void check_trainer(Rules& rules) {
  check_mixed_precision(rules);
  check_decay_groups(rules);
  const TrainingConfig& t = rules.plan().training;
  if (!traits_of(t.framework).data_parallel_only) return;
  check_ranks(rules);
  rules.require(t.recompute != Recompute::kSelective,
                "gradient checkpointing runs whole layers again",
                "training.recompute = selective, training.framework = " + to_string(t.framework),
                "use --recompute-granularity full, or leave it out");
}

}  // namespace estimator
