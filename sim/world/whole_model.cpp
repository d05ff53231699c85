#include "sim/world/whole_model.h"

#include "models/trainer.h"
#include "sim/rank/rank_run.h"

namespace sim {

using estimator::Plan;

Plan without_dropout(Plan plan) {
  plan.model.hidden_dropout = 0;
  plan.model.attention_dropout = 0;
  return plan;
}

Plan whole_plan(const Plan& plan) {
  Plan whole = plan;
  whole.cluster.nodes = 1;
  whole.cluster.gpus_per_node = 1;
  whole.cluster.nics_per_node = 1;
  whole.training.make_vocab_size_divisible_by =
      *plan.training.make_vocab_size_divisible_by * plan.parallelism.tensor;
  whole.training.optimizer_cpu_offload = false;  // which must not change a number
  whole.parallelism = {.data = 1, .bucket_elements = plan.parallelism.bucket_elements};
  return whole;
}

models::OptimizerSettings verification_optimizer(const Plan& plan) {
  models::OptimizerSettings settings = models::default_optimizer(plan);
  settings.epsilon = 1e-3;
  return settings;
}

std::vector<Snapshot> run_whole_model(const Plan& plan) {
  std::vector<Snapshot> snapshots;
  const RankRunHooks hooks{.before_step =
                               [&](int64_t, const models::Trainer& trainer) {
                                 snapshots.push_back(take_gradients(trainer));
                               },
                           .after_iteration =
                               [&](int64_t, const models::Trainer& trainer) {
                                 add_parameters(snapshots.back(), trainer);
                               },
                           .optimizer = verification_optimizer(plan)};
  const RankRunOptions options{
      .device = estimator::DeviceKind::kCpu, .all_micro_batches = true, .attribute_memory = false};
  run_rank(whole_plan(plan), 0, options, hooks);
  return snapshots;
}

}  // namespace sim
