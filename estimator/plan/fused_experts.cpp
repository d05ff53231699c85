#include "estimator/plan/fused_experts.h"

#include "estimator/base/units.h"
#include "estimator/plan/quantization.h"

namespace estimator {
namespace {

/// Of a micro-batch, each as often as it has experts.
int64_t sent_rows(const Plan& plan) {
  return plan.local_sequence() * plan.training.micro_batch_size * plan.model.moe_router_topk;
}

}  // namespace

int64_t expert_row_multiple(const TrainingConfig& training) {
  constexpr int64_t kOfGroupedTensors = 256;
  return training.use_transformer_engine_op_fuser ? kOfGroupedTensors
                                                  : quantization_of(training).expert_rows;
}

std::optional<int64_t> expert_row_budget(const Plan& plan) {
  const std::optional<double>& factor = plan.training.moe_expert_rank_capacity_factor;
  if (!factor) return std::nullopt;
  const auto rows = static_cast<int64_t>(static_cast<double>(sent_rows(plan)) * *factor);
  return round_up(rows, expert_row_multiple(plan.training));
}

int64_t mean_expert_rows(const Plan& plan) {
  const std::optional<int64_t> budget = expert_row_budget(plan);
  if (!budget) return sent_rows(plan);
  return static_cast<int64_t>(static_cast<double>(*budget) /
                              *plan.training.moe_expert_rank_capacity_factor);
}

}  // namespace estimator
