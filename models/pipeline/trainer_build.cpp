// How a trainer builds its shard and its optimizer.
#include "estimator/plan/dealt_parameters.h"
#include "estimator/schedule/active_chunks.h"
#include "models/data_parallel/fully_sharded.h"
#include "models/data_parallel/joined_data_parallel.h"
#include "models/data_parallel/zero_shards.h"
#include "models/pipeline/stage_gradients.h"
#include "models/pipeline/trainer.h"

namespace models {
namespace {

/// That of FSDP2's policy. Without one, as of a model in 16 bits, gradients keep their type.
c10::ScalarType reduce_type(const ShardContext& context) {
  return context.framework().reduces_in_compute_type ? scalar_type(context.plan.training.dtype)
                                                     : at::kFloat;
}

/// DeepSpeed updates each group, and each of its parts, by itself (_optimizer_step).
UpdateCalls update_calls(const estimator::Plan& plan) {
  if (estimator::traits_of(plan.training.framework).deepspeed_engine) return UpdateCalls::kEach;
  if (plan.parallelism.overlap_param_gather_with_optimizer_step) return UpdateCalls::kFirstChunk;
  return plan.training.decay_groups ? UpdateCalls::kByDecay : UpdateCalls::kOne;
}

}  // namespace

OptimizerSettings default_optimizer(const estimator::Plan& plan) {
  OptimizerSettings settings;
  settings.kind = plan.training.optimizer;
  const estimator::FrameworkTraits& framework = estimator::traits_of(plan.training.framework);
  settings.shared_step = framework.shared_step_counter;
  settings.master_weights = framework.master_weights;
  settings.copies_before_cast = framework.copies_before_cast;
  settings.scales_loss = plan.training.dtype == estimator::Dtype::kFp16;
  settings.state_at_start = framework.gradient_keeping == estimator::GradientKeeping::kDeepspeed;
  settings.gradients_come_clipped = framework.deepspeed_engine;
  settings.clips_on_device = framework.clips_on_device;
  settings.sums_norms = framework.clips_on_device && plan.fully_sharded();
  settings.calls = update_calls(plan);
  settings.narrow_moments = plan.training.exp_avg_dtype == estimator::Dtype::kBf16;
  settings.experts_apart = estimator::experts_are_apart(plan);
  const estimator::TrainingConfig& training = plan.training;
  settings.muon.steps = training.muon_num_ns_steps;
  settings.muon.split_qkv = training.muon_split_qkv;
  settings.muon.nesterov = training.muon_nesterov;
  settings.muon.tensor_mode = training.muon_tp_mode;
  if (training.optimizer_cpu_offload) {
    settings.offload = {.fraction = training.optimizer_offload_fraction,
                        .overlap = training.overlap_cpu_optimizer_d2h_h2d,
                        .pin_gradients = training.pin_cpu_grads,
                        .pin_parameters = training.pin_cpu_params};
  }
  return settings;
}

void Trainer::build_model() {
  build_shard();
  if (context_.torch_pipeline()) torch_stage_ = std::make_unique<TorchStage>(context_, *stage_);
}

void Trainer::build_shard() {
  if (context_.plan.fully_sharded()) return build_fully_sharded();
  if (context_.zero_shards()) return build_zero_shards();
  stage_ = std::make_unique<Stage>(context_);
  data_parallel_ = make_data_parallel(context_, *stage_);
  context_.data_parallel = data_parallel_.get();
}

FullyShardedOptions Trainer::fully_sharded_options(int64_t chunk) {
  return {.device = context_.device,
          .data_group = context_.groups.data,
          .expert_data_group = context_.groups.expert_data,
          .replica_group = context_.groups.instances,
          .experts_are_units = context_.experts_are_unit(),
          .tensor_group = context_.groups.tensor,
          .reshard_after_forward = context_.plan.parallelism.zero_stage >= 3,
          .reshards_last =
              context_.framework().root_unit || context_.plan.parallelism.reshard_last_unit,
          .part_type = context_.part_type(),
          .reduce_type = reduce_type(context_),
          .accumulates_whole_gradients = context_.framework().accumulates_whole_gradients,
          .in_pipeline = context_.torch_pipeline(),
          .chunk = chunk,
          .gathers_once = context_.torch_pipeline() && context_.plan.parallelism.zero_stage == 2 &&
                          context_.chunks() <= estimator::kMostActiveChunks,
          .observer = context_.observer};
}

void Trainer::build_fully_sharded() {
  std::vector<std::unique_ptr<DataParallel>> engines;
  for (int64_t chunk = 0; chunk < context_.chunks(); ++chunk) {
    auto engine = std::make_unique<FullySharded>(fully_sharded_options(chunk));
    context_.fully_sharded.push_back(engine.get());
    engines.push_back(std::move(engine));
  }
  stage_ = std::make_unique<Stage>(context_);
  for (int64_t chunk = 0; chunk < context_.chunks(); ++chunk) {
    context_.fully_sharded[static_cast<std::size_t>(chunk)]->set_parameters(stage_->parameters(),
                                                                            stage_->units(chunk));
  }
  if (engines.size() == 1) {
    data_parallel_ = std::move(engines.front());
  } else {
    data_parallel_ = std::make_shared<JoinedDataParallel>(std::move(engines), /*chained=*/false);
  }
}

void Trainer::build_zero_shards() {
  const estimator::ParallelConfig& parallelism = context_.plan.parallelism;
  const auto shards = std::make_shared<ZeroShards>(ZeroShardsOptions{
      .gathers = {.prefetch_elements = parallelism.stage3_prefetch_bucket_size,
                  .persistent_elements = parallelism.stage3_param_persistence_threshold,
                  .live_elements = parallelism.stage3_max_live_parameters,
                  .reuse_elements = parallelism.stage3_max_reuse_distance,
                  .overlap = parallelism.overlap_comm,
                  .device = context_.device,
                  .data_group = context_.groups.data,
                  .observer = context_.observer},
      .bucket_elements = parallelism.reduce_bucket_size,
      .sub_group_elements = parallelism.sub_group_size,
      .checks_overflow = context_.plan.training.dtype == estimator::Dtype::kFp16,
      .device_computes = context_.device_computes});
  context_.modules = shards.get();
  data_parallel_ = shards;
  stage_ = std::make_unique<Stage>(context_);
  shards->set_parameters(stage_->parameters().in_order(), optimizer_groups(context_, *stage_));
  context_.data_parallel = data_parallel_.get();
}

void Trainer::build_optimizer() {
  settings_.device_computes = context_.device_computes;
  optimizer_ = std::make_unique<DistributedOptimizer>(*data_parallel_, settings_, context_.groups);
}

}  // namespace models
