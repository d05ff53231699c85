// The context that every module of the shard is given when it is built.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "estimator/plan/frameworks.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"
#include "models/shard/autocast.h"
#include "models/shard/communicator.h"
#include "models/shard/context_chunks.h"
#include "models/shard/delayed_gradients.h"
#include "models/shard/delayed_scales.h"
#include "models/shard/framework_buffers.h"
#include "models/shard/layer_graphs.h"
#include "models/shard/module_runner.h"
#include "models/shard/observer.h"
#include "models/shard/output_keeper.h"
#include "models/shard/paged_stash.h"
#include "models/shard/parameters.h"
#include "models/shard/products.h"

namespace models {

c10::ScalarType scalar_type(estimator::Dtype dtype);

class DataParallel;
class FullySharded;

/// Null if the plan delays none.
std::shared_ptr<DelayedGradients> make_delayed_gradients(const estimator::Plan& plan);

/// Null if the plan's scales do not follow from earlier micro-batches.
std::shared_ptr<DelayedScales> make_delayed_scales(const estimator::Plan& plan,
                                                   const ProcessGroups& groups,
                                                   at::Device device,
                                                   Observer& observer);

/// The keeper for selective recompute by operator; null if the plan does not use it.
std::shared_ptr<OutputKeeper> make_output_keeper(const estimator::Plan& plan);

struct ShardContext {
  const estimator::Plan& plan;
  estimator::RankCoordinate coordinate;
  ProcessGroups groups;
  at::Device device;
  Observer& observer;
  bool device_computes = true;  ///< false on the virtual GPU, where kernels have no results
  /// FSDP2's engine of each model chunk; empty without FSDP2. They belong to `data_parallel`.
  std::vector<FullySharded*> fully_sharded;
  ModuleRunner* modules = nullptr;        ///< null where parameters are there all the time
  DataParallel* data_parallel = nullptr;  ///< of the stage, once it is built
  std::shared_ptr<FrameworkBuffers> buffers =
      std::make_shared<FrameworkBuffers>(observer, tuned_kernels());
  std::shared_ptr<OutputKeeper> keeper = make_output_keeper(plan);
  std::shared_ptr<DelayedGradients> delayed_gradients = make_delayed_gradients(plan);
  std::shared_ptr<PagedStash> stash = make_paged_stash(plan, device, observer, device_computes);
  std::shared_ptr<DelayedScales> delayed_scales =
      make_delayed_scales(plan, groups, device, observer);
  std::shared_ptr<LayerGraphs> graphs = std::make_shared<LayerGraphs>(plan.training);

  int64_t tensor_size() const { return plan.parallelism.tensor; }
  bool sequence_parallel() const { return plan.parallelism.sequence_parallel; }
  const estimator::FrameworkTraits& framework() const {
    return estimator::traits_of(plan.training.framework);
  }
  /// Whether layers are TransformerEngine's. The output layer is always Megatron-LM's own.
  bool transformer_engine() const {
    return framework().transformer_engine &&
           plan.training.transformer_impl == estimator::TransformerImpl::kTransformerEngine;
  }
  /// Python of TransformerEngine's modules, or of Megatron-LM's that were measured with them; null
  /// where a plan has not got them.
  const char* python_of_engine(const char* function) const {
    return transformer_engine() ? function : nullptr;
  }
  TunedKernels tuned_kernels() const {
    return {.of_triton = transformer_engine(),
            .cleared_bytes = framework().compiled_functions ? inductor_cleared_bytes(plan) : 0};
  }
  /// The matrix products of all layers except the output layer.
  Products products() const {
    return Products(
        {.transformer_engine = transformer_engine(), .device_computes = device_computes});
  }
  /// Whether products add the weight's gradient directly to the fp32 main gradient.
  bool fused_weight_gradient() const {
    return framework().fused_weight_gradient && plan.training.gradient_accumulation_fusion;
  }
  /// Whether the activation is one kernel, which keeps only its input and its bias.
  bool fused_activation() const {
    const bool is_fused = plan.model.activation == estimator::Activation::kSwiglu
                              ? plan.training.bias_swiglu_fusion
                              : plan.training.bias_gelu_fusion;
    return framework().fused_gated_activation && is_fused;
  }
  /// The place of this rank's part in each sequence.
  ContextPlace context_place() const {
    return {.ranks = plan.parallelism.context, .index = coordinate.context};
  }
  /// Whether tokens [s, b] are views of [b, s], and what the embedding finds for them is copied to
  /// [s, b, h] (language_model_embedding.py, and forward of VocabParallelEmbedding in
  /// megatron/core/tensor_parallel/layers.py).
  bool batch_first_tokens() const {
    return framework().transformer_engine && plan.training.micro_batch_size > 1;
  }
  /// Whether it is TorchTitan's Qwen3, its only model with norms of queries and keys.
  bool torchtitan_qwen3() const {
    return plan.training.framework == estimator::Framework::kTorchtitan &&
           plan.model.qk_layernorm && !plan.model.multi_latent_attention;
  }
  /// Whether a layer's checkpoint is torch.utils.checkpoint's without reentry, and keeps no
  /// outputs: it recomputes when backward first needs what was not kept, so that the layer's last
  /// operators, which keep nothing, are differentiated before.
  bool recomputes_late() const { return framework().selective_by_operator && !keeper; }
  /// Whether the layers that tensor ranks split compute with DTensors.
  bool has_dtensors() const { return framework().functional_collectives && tensor_size() > 1; }
  /// Whether this is a stage of torch.distributed.pipelining.
  bool torch_pipeline() const { return plan.torch_pipeline(); }
  int64_t stages() const { return plan.parallelism.pipeline; }
  bool is_first_stage() const { return coordinate.pipeline == 0; }
  bool is_last_stage() const { return coordinate.pipeline == stages() - 1; }
  /// Number of pieces of the model (virtual stages) on this rank's stage.
  int64_t chunks() const { return plan.parallelism.virtual_stages; }
  /// The number of a chunk among all pieces of the model; they go round the stages in a loop.
  int64_t piece(int64_t chunk) const { return chunk * stages() + coordinate.pipeline; }
  bool is_first_piece(int64_t chunk) const { return piece(chunk) == 0; }
  bool is_last_piece(int64_t chunk) const { return piece(chunk) == stages() * chunks() - 1; }
  /// Whether a chunk has the final norm; see Plan.
  bool has_final_norm(int64_t chunk) const {
    return piece(chunk) == plan.virtual_stage_of_final_norm();
  }
  /// Whether a chunk has layers of multi-token prediction.
  bool predicts_more_tokens(int64_t chunk) const {
    return plan.model.predicts_more_tokens() && is_last_piece(chunk);
  }
  /// The part of each parameter that this rank keeps; empty if it keeps whole parameters.
  std::optional<DataPart> data_part() const;
  /// Whether it is DeepSpeed's ZeRO stage 3 that divides them.
  bool zero_shards() const {
    return framework().deepspeed_engine && plan.parallelism.zero_stage == 3;
  }
  /// The same, of the parameters of experts.
  std::optional<DataPart> expert_data_part() const;
  /// Whether the experts of a layer are an FSDP unit inside of the layer's, because fewer ranks
  /// have copies of them than of the rest.
  bool experts_are_unit() const { return plan.fully_sharded() && plan.parallelism.expert > 1; }
  at::TensorOptions options() const {
    return at::TensorOptions().device(device).dtype(scalar_type(plan.training.dtype));
  }
  /// Of whole parameters, and so of the residual stream, which autocast leaves in their type.
  at::TensorOptions parameter_options() const {
    const bool parts_are_fp32 = plan.fully_sharded();
    return parts_are_fp32 ? options() : options().dtype(scalar_type(plan.training.frozen_dtype()));
  }
  /// Of whole adapters, if the plan has some.
  std::optional<at::TensorOptions> adapter_options() const {
    if (!plan.training.has_adapters()) return std::nullopt;
    if (plan.fully_sharded()) return options();
    return options().dtype(scalar_type(plan.training.parameter_dtype()));
  }
  /// Of the parts of parameters that FSDP2 keeps.
  c10::ScalarType part_type() const {
    return framework().mixed_precision ? scalar_type(plan.training.parameter_dtype()) : at::kFloat;
  }
  /// Of the forward: parameters are fp32, and no policy of FSDP2 casts them.
  std::optional<Autocast> autocast() const {
    if (!plan.training.mixed_precision || plan.fully_sharded()) return std::nullopt;
    return Autocast{.device = device.type(), .type = scalar_type(plan.training.dtype)};
  }
  /// Whether DistributedDataParallel looks for parameters without a gradient (_wrap_model of
  /// transformers' Trainer). With adapters and checkpoints the Trainer would, too, and fail; people
  /// set ddp_find_unused_parameters to false.
  bool finds_unused_parameters() const {
    return framework().finds_unused_parameters && plan.parallelism.zero_stage == 0 && groups.data &&
           plan.training.recompute == estimator::Recompute::kNone;
  }
  /// Rows of the residual stream on this rank: the sequence, or its part under context and sequence
  /// parallelism.
  int64_t local_sequence() const { return plan.local_sequence(); }
};

}  // namespace models
