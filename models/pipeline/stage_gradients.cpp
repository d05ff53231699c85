#include "models/pipeline/stage_gradients.h"

#include <algorithm>

#include "estimator/plan/dealt_parameters.h"
#include "estimator/plan/megatron_core.h"
#include "models/data_parallel/joined_data_parallel.h"
#include "models/data_parallel/zero_partition.h"
#include "models/optimizer/muon.h"

namespace models {
namespace {

bool keeps_as_deepspeed(const estimator::FrameworkTraits& framework) {
  return framework.gradient_keeping == estimator::GradientKeeping::kDeepspeed;
}

/// Buckets let reductions overlap with backward. Megatron-LM cuts them only then, and only in the
/// first chunk of the first stage, whose reduction is on the critical path, unless all of this
/// chunk is gathered while the optimizer updates the others; other frameworks cut them always.
int64_t bucket_limit(const ShardContext& context) {
  const estimator::ParallelConfig& parallelism = context.plan.parallelism;
  const bool overlaps = parallelism.overlap_grad_reduce && context.is_first_stage() &&
                        !parallelism.overlap_param_gather_with_optimizer_step;
  // ZeRO of DeepSpeed parts the whole, and cuts only what it sends.
  if (keeps_as_deepspeed(context.framework())) return 0;
  return overlaps || context.framework().always_buckets ? context.plan.bucket_elements() : 0;
}

c10::ScalarType gradient_type(const ShardContext& context) {
  if (context.plan.training.grad_reduce_in_bf16) return scalar_type(context.plan.training.dtype);
  const estimator::Dtype dtype = context.plan.training.parameter_dtype();
  const bool is_fp32 = context.framework().gradient_type == estimator::GradientType::kFp32 ||
                       own_gradients(context) == OwnGradients::kUntilNextBackward;
  return is_fp32 ? at::kFloat : scalar_type(dtype);
}

ParameterList of_chunk(const ParameterList& parameters, int64_t chunk) {
  ParameterList list = parameters;
  std::erase_if(list, [&](const Parameter* parameter) { return parameter->chunk != chunk; });
  return list;
}

/// How Megatron-LM divides what Muon updates over the data ranks.
enum class MatrixSharding { kNone, kByLayout, kInTurn };

MatrixSharding matrix_sharding(const estimator::Plan& plan) {
  const estimator::ParallelConfig& parallelism = plan.parallelism;
  if (plan.training.optimizer != estimator::Optimizer::kMuon || parallelism.zero_stage == 0) {
    return MatrixSharding::kNone;
  }
  return estimator::deals_parameters_in_turn(plan) ? MatrixSharding::kInTurn
                                                   : MatrixSharding::kByLayout;
}

/// Each of several chained optimizers gathers all parameters, but the layer-wise one its own.
bool gathers_after_each(const estimator::Plan& plan, bool has_experts_apart) {
  const bool chained = has_experts_apart && matrix_sharding(plan) == MatrixSharding::kNone;
  return chained && estimator::gathers_with_experts(plan) > 1;
}

enum class BufferKind {
  kMatrices,   ///< which Muon updates, each as a whole
  kQuantized,  ///< weights in 8 or 4 bits
  kOthers,
};

/// Parameters of a gradient buffer of their own.
struct BufferPart {
  BufferKind kind = BufferKind::kOthers;
  ParameterList parameters;
  Group data_group;
};

/// Where buffers are laid out for whole matrices, all other parameters have a buffer of their own
/// (tag_params_for_buffer_routing in megatron/core/optimizer/layer_wise_optimizer.py).
BufferKind kind_of(const estimator::Plan& plan, const Parameter& parameter) {
  if (parameter.quantized) return BufferKind::kQuantized;
  const bool apart = matrix_sharding(plan) == MatrixSharding::kByLayout;
  return apart && is_of_muon(parameter) ? BufferKind::kMatrices : BufferKind::kOthers;
}

/// Adds the buffers of the parameters, in the order of their first ones (group_params_for_buffers
/// in megatron/core/distributed/param_and_grad_buffer.py).
void add_parts(const estimator::Plan& plan,
               const ParameterList& parameters,
               const Group& data_group,
               std::vector<BufferPart>& parts) {
  const auto first = static_cast<std::ptrdiff_t>(parts.size());
  for (Parameter* parameter : parameters) {
    const BufferKind kind = kind_of(plan, *parameter);
    auto part = std::find_if(parts.begin() + first, parts.end(), [kind](const BufferPart& other) {
      return other.kind == kind;
    });
    if (part == parts.end()) {
      part = parts.insert(part, {.kind = kind, .parameters = {}, .data_group = data_group});
    }
    part->parameters.push_back(parameter);
  }
}

WholeOwners whole_owners(const ShardContext& context) {
  if (matrix_sharding(context.plan) == MatrixSharding::kInTurn) return WholeOwners::kInTurn;
  const bool is_parted = context.plan.parallelism.zero_stage >= 1;
  return is_parted && context.framework().whole_parameters ? WholeOwners::kBySize
                                                           : WholeOwners::kNone;
}

/// PyTorch's own sizes of buckets where the framework leaves them to PyTorch.
std::optional<ReducerOptions> reducer_options(const ShardContext& context) {
  const estimator::FrameworkTraits& framework = context.framework();
  if (!framework.reducer_buckets || context.plan.parallelism.zero_stage >= 1) return std::nullopt;
  ReducerOptions options{.shape = {}, .finds_unused = context.finds_unused_parameters()};
  if (framework.bucket_bytes > 0) {
    const int64_t element = bytes_per_element(context.plan.training.parameter_dtype());
    options.shape = {.first = framework.first_bucket_bytes / element,
                     .others = context.plan.bucket_elements()};
  }
  return options;
}

std::unique_ptr<DataParallel> gradient_buffer(const ShardContext& context,
                                              Stage& stage,
                                              const BufferPart& part,
                                              const std::shared_ptr<const SideStream>& stream) {
  const bool is_parted = context.plan.parallelism.zero_stage >= 1;
  const WholeOwners owners = whole_owners(context);
  return std::make_unique<GradientBuffer>(
      part.parameters,
      GradientBufferOptions{.shape = {.sharded = is_parted && owners == WholeOwners::kNone,
                                      .data_ranks = group_size(part.data_group),
                                      .bucket_elements = bucket_limit(context),
                                      .cut_later_chunks = context.framework().always_buckets,
                                      .tied = stage.tied_weight(),
                                      .whole_matrices = part.kind == BufferKind::kMatrices},
                            .type = gradient_type(context),
                            .reducer = reducer_options(context),
                            .check_finite = context.plan.training.check_for_nan_in_loss_and_grad,
                            .overlap = context.plan.parallelism.overlap_grad_reduce,
                            .overlap_gather = context.plan.parallelism.overlap_param_gather,
                            .own_gradients = own_gradients(context),
                            .flat_pieces = keeps_as_deepspeed(context.framework()),
                            .whole_owners = owners,
                            .replicas = context.plan.replicas(),
                            .keeps_step_gradients = context.plan.training.grad_reduce_in_bf16,
                            .data_group = part.data_group,
                            .instances = context.groups.instances,
                            .observer = context.observer,
                            .stream = stream});
}

std::unique_ptr<DataParallel> zero_partition(const ShardContext& context, Stage& stage) {
  const estimator::ParallelConfig& parallelism = context.plan.parallelism;
  return std::make_unique<ZeroPartition>(
      optimizer_groups(context, stage),
      ZeroPartitionOptions{
          .stage = parallelism.zero_stage,
          .bucket_elements = parallelism.reduce_bucket_size,
          .overlap = parallelism.overlap_comm,
          .checks_overflow = context.plan.training.dtype == estimator::Dtype::kFp16,
          .device_computes = context.device_computes,
          .device = context.device,
          .data_group = context.groups.data,
          .observer = context.observer});
}

}  // namespace

std::vector<ParameterList> optimizer_groups(const ShardContext& context, Stage& stage) {
  ParameterList all = stage.parameters().in_order();
  if (!context.plan.training.decay_groups) return {all};
  const auto rest = std::stable_partition(all.begin(), all.end(), decays);
  return {{all.begin(), rest}, {rest, all.end()}};
}

OwnGradients own_gradients(const ShardContext& context) {
  switch (context.framework().gradient_keeping) {
    case estimator::GradientKeeping::kAdded:
      return OwnGradients::kAdded;
    case estimator::GradientKeeping::kUntilSummed:
      return OwnGradients::kUntilSummed;
    case estimator::GradientKeeping::kUntilZeroed:
      return context.plan.parallelism.zero_stage == 0 ? OwnGradients::kUntilZeroed
                                                      : OwnGradients::kAdded;
    case estimator::GradientKeeping::kDeepspeed:
      break;
  }
  return context.plan.training.dtype == estimator::Dtype::kBf16 ? OwnGradients::kUntilNextBackward
                                                                : OwnGradients::kUntilStep;
}

std::unique_ptr<DataParallel> make_data_parallel(const ShardContext& context, Stage& stage) {
  const bool is_parted = context.plan.parallelism.zero_stage >= 1;
  if (context.framework().deepspeed_engine && is_parted) return zero_partition(context, stage);
  // Each chunk is in a DistributedDataParallel of its own.
  ParameterStore& parameters = stage.parameters();
  const std::optional<ReducerOptions> reducer = reducer_options(context);
  if (reducer && reducer->is_torchs() && context.groups.data) {
    send_first_values(parameters.in_order(), *context.groups.data);
  }
  const bool apart = estimator::experts_are_apart(context.plan);
  const ParameterList shared = apart ? parameters.of_experts(false) : parameters.trained();
  const ParameterList experts = apart ? parameters.of_experts(true) : ParameterList();
  // Megatron-LM makes the buffers of all chunks on a stream of their own (ddp_stream of get_model
  // in megatron/training/training.py).
  const auto stream = context.framework().transformer_engine
                          ? std::make_shared<const SideStream>(context.device)
                          : nullptr;
  std::vector<std::unique_ptr<DataParallel>> parts;
  for (int64_t chunk = 0; chunk < context.chunks(); ++chunk) {
    std::vector<BufferPart> of_buffers;
    add_parts(context.plan, of_chunk(shared, chunk), context.groups.data, of_buffers);
    add_parts(context.plan, of_chunk(experts, chunk), context.groups.expert_data, of_buffers);
    for (const BufferPart& part : of_buffers) {
      parts.push_back(gradient_buffer(context, stage, part, stream));
    }
  }
  if (parts.empty()) parts.push_back(gradient_buffer(context, stage, {}, stream));
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<JoinedDataParallel>(std::move(parts),
                                              gathers_after_each(context.plan, !experts.empty()));
}

}  // namespace models
