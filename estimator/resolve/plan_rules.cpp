#include "estimator/resolve/plan_rules.h"

#include "estimator/resolve/resolve_plan.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

/// In the order in which a reader meets the subjects.
constexpr void (*kSubjects[])(Rules&) = {check_cluster,
                                         check_tensor_split,
                                         check_pipeline,
                                         check_context,
                                         check_experts,
                                         check_expert_overlap,
                                         check_fused_experts,
                                         check_latent_attention,
                                         check_batch_and_sequence,
                                         check_length_of_training,
                                         check_flash_attention,
                                         check_allocator,
                                         check_cublas_workspace,
                                         check_megatron_keys,
                                         check_user_buffers,
                                         check_quantization,
                                         check_determinism,
                                         check_optimizer,
                                         check_recompute,
                                         check_cuda_graphs,
                                         check_layers,
                                         check_trainer,
                                         check_adapters,
                                         check_schedule,
                                         check_norm_fusion,
                                         check_sharding,
                                         check_deepspeed,
                                         check_optimizer_offload};

}  // namespace

std::vector<BrokenRule> numbers_out_of_range(const Plan& plan, const PlanContext& context) {
  Rules rules(plan, context);
  if (context.world_size) {
    rules.in_range(1, kLargestWorld, *context.world_size, context.world_size_origin);
  }
  check_model_ranges(rules);
  if (rules.broken().empty()) check_model_size(rules);
  check_headroom(rules);
  return rules.broken();
}

std::vector<BrokenRule> broken_cluster_rules(const ClusterConfig& cluster) {
  const Plan plan{.cluster = cluster};
  Rules rules(plan, {});
  check_hardware(rules);
  return rules.broken();
}

std::vector<BrokenRule> broken_rules(const Plan& plan, const PlanContext& context) {
  Rules rules(plan, context);
  for (const auto check : kSubjects) check(rules);
  return rules.broken();
}

}  // namespace estimator
