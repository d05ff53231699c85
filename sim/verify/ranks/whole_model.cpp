#include "sim/verify/ranks/whole_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "models/pipeline/trainer.h"
#include "sim/rank/rank_run.h"

namespace sim {

using estimator::Plan;

namespace {

using Values = std::vector<float> TensorSnapshot::*;

std::vector<Snapshot> snapshots_of(const Plan& plan) {
  std::vector<Snapshot> snapshots;
  RankRunHooks hooks = snapshot_hooks(snapshots);
  hooks.optimizer = verification_optimizer(plan);
  const RankRunOptions options{
      .device = estimator::DeviceKind::kCpu, .all_micro_batches = true, .attribute_memory = false};
  run_rank(plan, 0, options, hooks);
  return snapshots;
}

double median_norm(Snapshot& snapshot, Values values) {
  std::vector<double> norms;
  for (TensorSnapshot& tensor : snapshot.tensors) {
    norms.push_back(norm_of(tensor_over(tensor.*values)));
  }
  return median(norms);
}

/// Of the distances to fp32, each over the tensor's norm.
double median_rounding(WholeIteration& whole, Values values) {
  std::vector<double> roundings;
  for (std::size_t i = 0; i < whole.wide.tensors.size(); ++i) {
    const at::Tensor rounded = tensor_over(whole.snapshot.tensors[i].*values);
    const at::Tensor wide = tensor_over(whole.wide.tensors[i].*values);
    const double norm = norm_of(rounded);
    if (norm > 0) roundings.push_back(norm_of(rounded - wide) / norm);
  }
  return median(roundings);
}

}  // namespace

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
      plan.training.make_vocab_size_divisible_by * plan.parallelism.tensor;
  whole.training.optimizer_cpu_offload = false;  // which must not change a number
  whole.parallelism = {.expert_tensor = 1,
                       .data = 1,
                       .zero_stage = 0,
                       .bucket_elements = plan.parallelism.bucket_elements};
  return whole;
}

models::OptimizerSettings verification_optimizer(const Plan& plan) {
  models::OptimizerSettings settings = models::default_optimizer(plan);
  settings.epsilon = 1e-3;
  settings.narrow_moments = false;  // what 16 bits round away is not the same on all ranks
  settings.muon.bf16 = false;
  settings.muon.smallest_norm = 1;  // else small momenta are as large as others, with their errors
  settings.muon.steps = 1;
  return settings;
}

WholeModel run_whole_model(const Plan& plan) {
  Plan whole = whole_plan(plan);
  std::vector<Snapshot> snapshots = snapshots_of(whole);
  std::vector<Snapshot> wide(snapshots.size());
  if (plan.training.dtype != estimator::Dtype::kFp32) {
    whole.training.dtype = estimator::Dtype::kFp32;
    wide = snapshots_of(whole);
  }
  WholeModel iterations;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    WholeIteration& iteration = iterations.emplace_back(
        WholeIteration{.snapshot = std::move(snapshots[i]), .wide = std::move(wide.at(i))});
    iteration.median_gradient_norm = median_norm(iteration.snapshot, &TensorSnapshot::gradient);
    iteration.gradients =
        tolerance_of(plan.training.dtype, median_rounding(iteration, &TensorSnapshot::gradient));
    iteration.parameters =
        tolerance_of(plan.training.dtype, median_rounding(iteration, &TensorSnapshot::parameter));
  }
  return iterations;
}

}  // namespace sim
