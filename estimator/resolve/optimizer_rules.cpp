#include "estimator/plan/frameworks.h"
#include "estimator/plan/quantization.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

/// Keys that say how Muon works mean nothing for another optimizer.
void check_unused_muon_keys(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  const TrainingConfig defaults;
  const auto unused = [&](bool is_default, const std::string& key) {
    rules.require(is_default,
                  "the key is only for Muon",
                  fmt::format("{}, training.optimizer = {}", key, to_string(t.optimizer)),
                  "add --optimizer muon, or leave it out");
  };
  unused(t.muon_num_ns_steps == defaults.muon_num_ns_steps, "training.muon_num_ns_steps");
  unused(t.muon_split_qkv, "training.muon_split_qkv");
  unused(!t.muon_nesterov, "training.muon_nesterov");
  unused(t.muon_tp_mode == defaults.muon_tp_mode, "training.muon_tp_mode");
  unused(plan.parallelism.use_layer_wise_param_layout, "parallelism.use_layer_wise_param_layout");
}

/// Megatron-LM's conditions: validate_args of training/arguments.py,
/// _get_megatron_emerging_optimizer of core/optimizer/__init__.py.
void check_muon(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const TrainingConfig& t = plan.training;
  if (t.optimizer != Optimizer::kMuon) return check_unused_muon_keys(rules);
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds, what, "training.optimizer = muon, " + where, help);
      };
  require(t.framework == Framework::kMegatronLm,
          "Muon is supported only as in Megatron-LM",
          "training.framework = " + to_string(t.framework),
          "use --framework megatron-lm, or adamw");
  require(t.dtype != Dtype::kFp16,
          "Megatron-LM's Muon has no loss scaling",
          "training.dtype = fp16",
          "use bf16");
  require(!plan.fully_sharded(),
          "Muon needs whole matrices, which FSDP2 does not keep",
          fmt::format("parallelism.zero_stage = {}", p.zero_stage.value()),
          "use ZeRO stage 0 or 1");
  require(t.muon_tp_mode != MuonTensorMode::kDistributed,
          "Muon that works on one matrix in all tensor ranks together is not supported yet",
          "training.muon_tp_mode = distributed",
          "use duplicated or blockwise");
  const bool in_turn = p.zero_stage == 1 && !p.use_layer_wise_param_layout;
  require(!in_turn || p.virtual_stages == 1,
          "matrices that are dealt out in turn are not supported with virtual stages yet",
          fmt::format("use_layer_wise_param_layout = false, virtual_stages = {}", p.virtual_stages),
          "leave out --no-use-layer-wise-param-layout, or use virtual_stages 1");
  require(!in_turn || !p.overlap_param_gather,
          "overlapped gathers of matrices that are dealt out in turn are not supported yet",
          "use_layer_wise_param_layout = false, overlap_param_gather",
          "leave out --no-use-layer-wise-param-layout or --overlap-param-gather");
}

/// validate_args of megatron/training/arguments.py.
void check_overlapped_gathers(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  if (rules.plan().training.framework != Framework::kMegatronLm || !p.overlap_param_gather) return;
  rules.require(
      p.zero_stage >= 1,
      "only the distributed optimizer gathers parameters",
      fmt::format("parallelism.overlap_param_gather, zero_stage = {}", p.zero_stage.value()),
      "add --use-distributed-optimizer, or leave out --overlap-param-gather");
  rules.require(p.overlap_grad_reduce,
                "Megatron-LM overlaps gathers of parameters only where it overlaps the reduction "
                "of gradients, too",
                "parallelism.overlap_param_gather without overlap_grad_reduce",
                "add --overlap-grad-reduce, or leave out --overlap-param-gather");
}

/// The precision-aware optimizer of megatron/core/optimizer/optimizer_config.py, which is
/// TransformerEngine's FusedAdam over the distributed optimizer's master weights. If only one of
/// the moments is narrow, it works on fp32 copies of it (get_unscaled_state in
/// transformer_engine/pytorch/optimizers/fused_adam.py).
void check_narrow_moments(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  const std::string where = fmt::format("training.exp_avg_dtype = {}, exp_avg_sq_dtype = {}",
                                        to_string(t.exp_avg_dtype),
                                        to_string(t.exp_avg_sq_dtype));
  rules.require(t.exp_avg_dtype == t.exp_avg_sq_dtype && t.exp_avg_dtype != Dtype::kFp16,
                "AdamW keeps both moments in fp32, or both in bf16",
                where,
                "use bf16 for both, or leave them out");
  if (t.exp_avg_dtype == Dtype::kFp32) return;
  rules.require(t.framework == Framework::kMegatronLm && plan.parallelism.zero_stage == 1 &&
                    t.optimizer == Optimizer::kAdamw && t.dtype != Dtype::kFp32 &&
                    !t.optimizer_cpu_offload,
                "moments in bf16 need Megatron-LM's distributed optimizer with AdamW on the GPU, "
                "over parameters in 16 bits",
                fmt::format("{}, training.framework = {}, parallelism.zero_stage = {}, "
                            "training.optimizer = {}, training.dtype = {}, "
                            "training.optimizer_cpu_offload = {}",
                            where,
                            to_string(t.framework),
                            plan.parallelism.zero_stage.value(),
                            to_string(t.optimizer),
                            to_string(t.dtype),
                            t.optimizer_cpu_offload),
                "add --use-distributed-optimizer, or leave them out");
  rules.require(quantization_of(t).finds_scale,
                "with the recipe delayed TransformerEngine keeps 16 bits of each master weight "
                "beside moments in bf16, which is not supported",
                where + ", training.fp8_recipe = delayed",
                "use another recipe, or leave them out");
}

/// validate_args of megatron/training/arguments.py, and megatron/core/optimizer/__init__.py and
/// optimizer_config.py: the buffer of gradients in which MXFP8 parameters come is zeroed by then.
void check_gathers_with_step(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  if (!p.overlap_param_gather_with_optimizer_step) return;
  const TrainingConfig& t = plan.training;
  constexpr const char* kGathersKey = "parallelism.overlap_param_gather_with_optimizer_step";
  rules.require(
      t.framework == Framework::kMegatronLm && p.overlap_param_gather && p.virtual_stages > 1,
      "only Megatron-LM's overlapped gathers of several chunks begin while the optimizer "
      "steps",
      fmt::format("{}, overlap_param_gather = {}, virtual_stages = {}",
                  kGathersKey,
                  p.overlap_param_gather,
                  p.virtual_stages),
      "add --overlap-param-gather and --vp, or leave it out");
  rules.require(t.optimizer == Optimizer::kAdamw && !t.optimizer_cpu_offload,
                "gathers begin between the steps of AdamW on the GPU",
                fmt::format("{}, training.optimizer = {}, training.optimizer_cpu_offload = {}",
                            kGathersKey,
                            to_string(t.optimizer),
                            t.optimizer_cpu_offload),
                "leave it out");
  rules.require(
      !keeps_weights_quantized(t) || !quantization_of(t).gathers_in_16_bits,
      "parameters that are gathered in the memory of gradients cannot be gathered before "
      "these are zeroed",
      std::string(kGathersKey) + ", training.fp8_param_gather, training.fp8_recipe = mxfp8",
      "leave it out, or use another recipe");
}

/// parallel_state.py and distributed/distributed_data_parallel.py of Megatron-LM's core, and
/// parallel_dims.py of TorchTitan (dp_replicate), which cut the ranks of a stage into consecutive
/// parts.
void check_optimizer_instances(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const int64_t instances = p.num_distributed_optimizer_instances;
  if (instances == 1) return;
  const auto require = [&](bool holds,
                           const char* what,
                           const std::string& where,
                           const std::string& help) {
    rules.require(
        holds,
        what,
        fmt::format("parallelism.num_distributed_optimizer_instances = {}, {}", instances, where),
        help);
  };
  require(plan.training.framework == Framework::kMegatronLm || plan.fully_sharded(),
          "only Megatron-LM's distributed optimizer and FSDP2 shard over a part of the data ranks",
          "training.framework = " + to_string(plan.training.framework),
          "use --framework megatron-lm, or torchtitan with --fsdp, or leave it out");
  require(p.zero_stage >= 1,
          "instances of the distributed optimizer, or FSDP2's replicas, need one of the two",
          fmt::format("zero_stage = {}", p.zero_stage.value()),
          "add --use-distributed-optimizer or --fsdp, or leave the instances out");
  require(plan.training.optimizer != Optimizer::kMuon,
          "Megatron-LM's layer-wise optimizer has one instance",
          "training.optimizer = muon",
          "use adamw, or one instance");
  if (!p.data.is_known()) return;
  require(p.data % instances == 0,
          "the instances do not divide the data ranks",
          fmt::format("data = {}", p.data),
          "use a number of instances that divides the data parallel size");
  require(!plan.fully_sharded() || plan.shards() > 1,
          "FSDP2 has no ranks left to shard over, because each data rank is a replica",
          fmt::format("data = {}, context = {}", p.data.value_or(1), p.context),
          "use fewer replicas, or --zero-stage 0");
  if (!plan.model.has_experts()) return;
  const int64_t experts = p.expert * p.expert_tensor.value_or(p.tensor);
  const int64_t ranks = p.tensor * plan.replicas();
  require(ranks % (experts * instances) == 0,
          "the instances do not divide the replicas of the experts",
          fmt::format("{} ranks of a stage, expert x expert_tensor = {}", ranks, experts),
          "use fewer instances, or a smaller expert parallel size");
}

}  // namespace

void check_optimizer(Rules& rules) {
  check_muon(rules);
  check_overlapped_gathers(rules);
  check_gathers_with_step(rules);
  check_narrow_moments(rules);
  check_optimizer_instances(rules);
}

}  // namespace estimator
