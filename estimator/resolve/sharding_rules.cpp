#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

/// What FSDP2 is built for here: TorchTitan's use of it, and that of others without a pipeline.
void check_fsdp2(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const auto require =
      [&](bool holds, const std::string& what, const std::string& where, const std::string& help) {
        rules.require(holds,
                      fmt::format("ZeRO stage {} is FSDP2 here, {}", p.zero_stage.value(), what),
                      where,
                      help);
      };
  const Framework framework = plan.training.framework;
  require(traits_of(framework).fully_sharded,
          "which the framework does not have",
          fmt::format("parallelism.zero_stage = {}, training.framework = {}",
                      p.zero_stage.value(),
                      to_string(framework)),
          "use --framework torchtitan, transformers, plain or deepspeed, or ZeRO stage 1");
  require(
      p.pipeline == 1 || plan.torch_pipeline(),
      "which only TorchTitan's pipelines have",
      fmt::format(
          "parallelism.pipeline = {}, training.framework = {}", p.pipeline, to_string(framework)),
      "use one stage, ZeRO stage 1, or --framework torchtitan");
  require(plan.training.dtype != Dtype::kFp16,
          "which has no loss scaling",
          "training.dtype = fp16",
          "use bf16");
  // _chunk_cat_cuda() of PyTorch 2.11 has the ranks in the second dimension of its grid, of which
  // CUDA allows 65,535 (aten/src/ATen/native/cuda/TensorShape.cu).
  constexpr int64_t kMostRanksOfKernel = 65'535;
  const int64_t ranks = p.data.value_or(1);
  require(ranks <= kMostRanksOfKernel,
          "whose reduce-scatter PyTorch prepares with a kernel for at most 65,535 ranks",
          fmt::format("parallelism.data = {}", ranks),
          "use fewer data ranks, for example with a tensor size");
}

/// fully_shard(), or DistributedDataParallel, which stands alone in parallelize_llama()
/// (torchtitan/models/llama3/infra/parallelize.py of v0.2.2).
void check_torchtitan(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const ModelConfig& model = rules.plan().model;
  constexpr const char* kShard = "use --zero-stage 3 (--fsdp) or 2, which are its fully_shard()";
  const auto require = [&](bool holds, const char* what) {
    rules.require(holds,
                  what,
                  fmt::format("parallelism.zero_stage = {}, tensor = {}, pipeline = {}, data = "
                              "{}, training.framework = torchtitan",
                              p.zero_stage.value(),
                              p.tensor,
                              p.pipeline,
                              p.data.value_or(1)),
                  kShard);
  };
  const bool is_llama = !model.qk_layernorm && !model.multi_latent_attention;
  const bool is_divided = p.tensor > 1 || p.pipeline > 1;
  require(p.zero_stage != 1, "TorchTitan has no distributed optimizer, which is ZeRO stage 1");
  require(p.zero_stage != 0 || p.data.value_or(1) == 1 || !is_llama || !is_divided,
          "TorchTitan has no DistributedDataParallel of a Llama beside tensor or pipeline ranks");
}

}  // namespace

void check_sharding(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const bool is_known = p.zero_stage >= 0 && p.zero_stage <= 3;
  rules.require(is_known,
                "there is no such ZeRO stage",
                fmt::format("parallelism.zero_stage = {}", p.zero_stage.value()),
                "use 0, 1 (the distributed optimizer), 2 or 3 (FSDP2, or DeepSpeed's)");
  if (is_known && rules.plan().fully_sharded()) check_fsdp2(rules);
  if (rules.plan().training.framework == Framework::kTorchtitan) check_torchtitan(rules);
  rules.require(!p.reshard_last_unit || (rules.plan().fully_sharded() && p.zero_stage == 3),
                "the last unit of FSDP2 is there in ZeRO stage 3 alone",
                fmt::format("parallelism.reshard_last_unit, parallelism.zero_stage = {}, "
                            "training.framework = {}",
                            p.zero_stage.value(),
                            to_string(rules.plan().training.framework)),
                "leave it out, or use --framework torchtitan and --zero-stage 3");
}

}  // namespace estimator
