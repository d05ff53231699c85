// A plan: the model, the cluster, how the one is laid over the other, and how it is trained.
//
// A plan is read from JSON (or the same tree from YAML and flags) and then resolved: presets are
// filled in, "auto" becomes a number, and every rule is checked. A resolved plan reads back as
// itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/auto_value.h"
#include "estimator/base/dtype.h"
#include "estimator/base/enum_names.h"
#include "estimator/base/json.h"
#include "estimator/plan/model_config.h"

namespace estimator {

/// Muon (Jordan et al. 2024) updates matrices, and AdamW beside it all other parameters.
enum class Optimizer { kAdamw, kSgd, kMuon };
constexpr std::array<EnumName<Optimizer>, 3> enum_names(Optimizer) {
  return {{{Optimizer::kAdamw, "adamw"}, {Optimizer::kSgd, "sgd"}, {Optimizer::kMuon, "muon"}}};
}

/// How tensor ranks orthogonalise a matrix of which each has a part, Megatron-LM's --muon-tp-mode:
/// each gathers the whole and works on it (duplicated), each works on its part alone (blockwise),
/// or all work on the whole together (distributed).
enum class MuonTensorMode { kDuplicated, kBlockwise, kDistributed };
constexpr std::array<EnumName<MuonTensorMode>, 3> enum_names(MuonTensorMode) {
  return {{{MuonTensorMode::kDuplicated, "duplicated"},
           {MuonTensorMode::kBlockwise, "blockwise"},
           {MuonTensorMode::kDistributed, "distributed"}}};
}

/// `full` recomputes whole layers from their input. What `selective` recomputes depends on the
/// framework; see frameworks.h.
enum class Recompute { kNone, kSelective, kFull };
constexpr std::array<EnumName<Recompute>, 3> enum_names(Recompute) {
  return {{{Recompute::kNone, "none"},
           {Recompute::kSelective, "selective"},
           {Recompute::kFull, "full"}}};
}

/// Of full recompute: all layers of a chunk, several of them as one, or each of the first ones
/// alone (checkpointed_forward in megatron/core/recompute.py).
enum class RecomputeMethod { kUniform, kBlock };
constexpr std::array<EnumName<RecomputeMethod>, 2> enum_names(RecomputeMethod) {
  return {{{RecomputeMethod::kUniform, "uniform"}, {RecomputeMethod::kBlock, "block"}}};
}

/// The attention kernel. `flash` is the flash-attn kernel, and `flash1` its first version in CUDA
/// or in Triton (both keep the same). `fused` is cuDNN's kernel, which writes its output into the
/// tensor that the next product reads. `unfused` materialises the attention weights.
enum class Attention { kFlash, kFlash1, kFused, kUnfused };
constexpr std::array<EnumName<Attention>, 4> enum_names(Attention) {
  return {{{Attention::kFlash, "flash"},
           {Attention::kFlash1, "flash1"},
           {Attention::kFused, "fused"},
           {Attention::kUnfused, "unfused"}}};
}

/// Megatron-LM's --transformer-impl.
enum class TransformerImpl { kTransformerEngine, kLocal };
constexpr std::array<EnumName<TransformerImpl>, 2> enum_names(TransformerImpl) {
  return {{{TransformerImpl::kTransformerEngine, "transformer_engine"},
           {TransformerImpl::kLocal, "local"}}};
}

/// Megatron-LM's cross-entropy: none is --cross-entropy-loss-fusion off, native and te are its
/// --cross-entropy-fusion-impl.
enum class CrossEntropyFusion { kNone, kNative, kTransformerEngine };
constexpr std::array<EnumName<CrossEntropyFusion>, 3> enum_names(CrossEntropyFusion) {
  return {{{CrossEntropyFusion::kNone, "none"},
           {CrossEntropyFusion::kNative, "native"},
           {CrossEntropyFusion::kTransformerEngine, "te"}}};
}

/// Megatron-LM's --fp8-format: the types in which TransformerEngine's linear layers multiply.
/// Hybrid has output gradients in e5m2, and all else in e4m3.
enum class Fp8Format { kNone, kE4m3, kHybrid };
constexpr std::array<EnumName<Fp8Format>, 3> enum_names(Fp8Format) {
  return {{{Fp8Format::kNone, "none"}, {Fp8Format::kE4m3, "e4m3"}, {Fp8Format::kHybrid, "hybrid"}}};
}

/// Megatron-LM's --fp8-recipe: where the scale of a tensor comes from.
enum class Fp8Recipe {
  kDelayed,     ///< the largest elements of earlier iterations
  kTensorwise,  ///< its own largest element
  kMxfp8,       ///< the largest of each 32 elements that a product sums
  kBlockwise,   ///< the largest of each 128 elements, of weights of each 128 x 128 (DeepSeek-V3)
};
constexpr std::array<EnumName<Fp8Recipe>, 4> enum_names(Fp8Recipe) {
  return {{{Fp8Recipe::kDelayed, "delayed"},
           {Fp8Recipe::kTensorwise, "tensorwise"},
           {Fp8Recipe::kMxfp8, "mxfp8"},
           {Fp8Recipe::kBlockwise, "blockwise"}}};
}

/// Megatron-LM's --fp4-format: the type in which these layers multiply in 4 bits.
enum class Fp4Format { kNone, kE2m1 };
constexpr std::array<EnumName<Fp4Format>, 2> enum_names(Fp4Format) {
  return {{{Fp4Format::kNone, "none"}, {Fp4Format::kE2m1, "e2m1"}}};
}

/// Megatron-LM's --fp4-recipe: a scale for each 16 elements that a product sums, and one for all.
enum class Fp4Recipe { kNvfp4 };
constexpr std::array<EnumName<Fp4Recipe>, 1> enum_names(Fp4Recipe) {
  return {{{Fp4Recipe::kNvfp4, "nvfp4"}}};
}

/// The framework whose kernels the shard stands for. Frameworks differ in what they keep for
/// backward; frameworks.h says what each of them means.
enum class Framework {
  kMegatronLm,
  kMegatronDeepspeed,
  kNanotron,
  kTorchtitan,
  kTransformers,
  kInternevo,
  kDeepspeed,
  kPlain
};
constexpr std::array<EnumName<Framework>, 8> enum_names(Framework) {
  return {{{Framework::kMegatronLm, "megatron-lm"},
           {Framework::kMegatronDeepspeed, "megatron-deepspeed"},
           {Framework::kNanotron, "nanotron"},
           {Framework::kTorchtitan, "torchtitan"},
           {Framework::kTransformers, "transformers"},
           {Framework::kInternevo, "internevo"},
           {Framework::kDeepspeed, "deepspeed"},
           {Framework::kPlain, "plain"}}};
}

/// The pipeline schedules, which estimator/schedule/pipeline_schedule.h describes. 1f1b with
/// virtual stages is interleaved.
enum class ScheduleKind {
  kOneForwardOneBackward,
  kGpipe,
  kZeroBubbleH1,
  kZeroBubbleV,
  kDualPipeV,
};
constexpr std::array<EnumName<ScheduleKind>, 5> enum_names(ScheduleKind) {
  return {{{ScheduleKind::kOneForwardOneBackward, "1f1b"},
           {ScheduleKind::kGpipe, "gpipe"},
           {ScheduleKind::kZeroBubbleH1, "zb-h1"},
           {ScheduleKind::kZeroBubbleV, "zb-v"},
           {ScheduleKind::kDualPipeV, "dualpipe-v"}}};
}

/// How context ranks exchange what attention needs, Megatron-LM's --cp-comm-type: p2p passes keys
/// and values around a ring, a2a exchanges the sequence for heads (Ulysses), all_gather gathers
/// keys and values, a2a+p2p is a ring of groups that do a2a.
enum class ContextComm { kP2p, kAllToAll, kAllGather, kHierarchical };
constexpr std::array<EnumName<ContextComm>, 4> enum_names(ContextComm) {
  return {{{ContextComm::kP2p, "p2p"},
           {ContextComm::kAllToAll, "a2a"},
           {ContextComm::kAllGather, "all_gather"},
           {ContextComm::kHierarchical, "a2a+p2p"}}};
}

/// How tokens are sent to their experts, Megatron-LM's --moe-token-dispatcher-type. alltoall sends
/// each token to the ranks of its experts, allgather sends all tokens to all ranks, and flex is the
/// dispatcher of DeepEP or HybridEP.
enum class TokenDispatcher { kAllToAll, kAllGather, kFlex };
constexpr std::array<EnumName<TokenDispatcher>, 3> enum_names(TokenDispatcher) {
  return {{{TokenDispatcher::kAllToAll, "alltoall"},
           {TokenDispatcher::kAllGather, "allgather"},
           {TokenDispatcher::kFlex, "flex"}}};
}

/// Whose buffers and kernels the flex dispatcher uses.
enum class FlexBackend { kDeepEp, kHybridEp };
constexpr std::array<EnumName<FlexBackend>, 2> enum_names(FlexBackend) {
  return {{{FlexBackend::kDeepEp, "deepep"}, {FlexBackend::kHybridEp, "hybridep"}}};
}

/// What is captured in CUDA graphs, Megatron-LM's --cuda-graph-impl: layers, by its own graphs or
/// by TransformerEngine's, or the forwards and backwards of a whole step.
enum class CudaGraphImpl { kNone, kLocal, kTransformerEngine, kFullIteration };
constexpr std::array<EnumName<CudaGraphImpl>, 4> enum_names(CudaGraphImpl) {
  return {{{CudaGraphImpl::kNone, "none"},
           {CudaGraphImpl::kLocal, "local"},
           {CudaGraphImpl::kTransformerEngine, "transformer_engine"},
           {CudaGraphImpl::kFullIteration, "full_iteration"}}};
}

/// The type of a router's logits and weights, Megatron-LM's --moe-router-dtype: that of the tokens
/// (none) or fp32.
enum class RouterDtype { kOfTokens, kFp32 };
constexpr std::array<EnumName<RouterDtype>, 2> enum_names(RouterDtype) {
  return {{{RouterDtype::kOfTokens, "none"}, {RouterDtype::kFp32, "fp32"}}};
}

struct ClusterConfig {
  std::string gpu;
  Auto<int64_t> nodes;
  Auto<int64_t> gpus_per_node;
  Auto<std::string> intra_link;
  Auto<std::string> inter_link;
  Auto<int64_t> nics_per_node;
  std::optional<int64_t> nodes_per_pod;
  double spine_oversubscription = 1;
  bool sharp = false;
  bool nvls = true;
  std::vector<std::string> nccl_tests;
  std::optional<double> gpu_deviation;
  std::optional<double> usd_per_gpu_hour;

  int64_t world_size() const { return nodes * gpus_per_node; }
};

struct ParallelConfig {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t context = 1;
  ContextComm context_comm = ContextComm::kP2p;
  int64_t expert = 1;
  Auto<int64_t> expert_tensor;
  Auto<int64_t> data;
  bool sequence_parallel = false;
  /// Stages are inside of data ranks, not outside: tensor, context, pipeline, data.
  bool use_tp_pp_dp_mapping = false;
  ScheduleKind pipeline_schedule = ScheduleKind::kOneForwardOneBackward;
  int64_t virtual_stages = 1;
  std::optional<int64_t> microbatch_group_size_per_virtual_stage;
  std::vector<int64_t> layers_per_stage;
  Auto<int64_t> zero_stage;
  /// Whether gradients are divided among the data ranks, after each micro-batch.
  bool divides_gradients() const { return zero_stage >= 2; }
  bool reshard_last_unit = false;
  int64_t num_distributed_optimizer_instances = 1;
  bool use_layer_wise_param_layout = true;
  Auto<int64_t> bucket_elements;
  Auto<int64_t> reduce_bucket_size;
  Auto<bool> overlap_comm;
  Auto<int64_t> stage3_prefetch_bucket_size;
  Auto<int64_t> stage3_param_persistence_threshold;
  int64_t stage3_max_live_parameters = 1'000'000'000;
  int64_t stage3_max_reuse_distance = 1'000'000'000;
  int64_t sub_group_size = 1'000'000'000;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  bool overlap_param_gather_with_optimizer_step = false;
  bool overlap_p2p_communication = true;
  bool overlap_p2p_warmup_flush = false;
  bool overlap_moe_expert_parallel_comm = false;
  bool delay_wgrad_compute = false;
  bool ep_overlap_early_attn_memory_release = false;
  bool defer_embedding_wgrad_compute = false;
  int64_t wgrad_deferral_limit = 0;
  bool tp_comm_overlap = false;
  bool tp_comm_overlap_disable_qkv = false;
  bool tp_linear_async_communication = false;
  bool tp_recompute_allgather = false;
};

inline constexpr const char* kSelectiveByOperator = "op";

struct TrainingConfig {
  int64_t micro_batch_size = 1;
  Auto<int64_t> global_batch_size;
  Auto<int64_t> gradient_accumulation_steps;  ///< as said; Plan::micro_batches() has the number
  Auto<int64_t> sequence_length;
  Dtype dtype = Dtype::kBf16;
  Auto<bool> mixed_precision;
  Optimizer optimizer = Optimizer::kAdamw;
  Auto<bool> decay_groups;
  int64_t muon_num_ns_steps = 5;
  bool muon_split_qkv = true;
  bool muon_nesterov = false;
  MuonTensorMode muon_tp_mode = MuonTensorMode::kDuplicated;
  bool optimizer_cpu_offload = false;
  double optimizer_offload_fraction = 1;
  bool use_precision_aware_optimizer = false;
  Dtype exp_avg_dtype = Dtype::kFp32;
  Dtype exp_avg_sq_dtype = Dtype::kFp32;
  bool overlap_cpu_optimizer_d2h_h2d = false;
  bool pin_cpu_grads = true;
  bool pin_cpu_params = true;
  int64_t lora_rank = 0;  ///< 0: all parameters are trained
  double lora_dropout = 0;
  std::vector<std::string> lora_target_modules;
  bool lora_a2a_experimental = false;
  Recompute recompute = Recompute::kNone;
  RecomputeMethod recompute_method = RecomputeMethod::kUniform;
  int64_t recompute_num_layers = 1;
  std::vector<std::string> recompute_modules;
  bool distribute_saved_activations = false;
  std::string selective_ac_option = kSelectiveByOperator;
  Auto<Attention> attention;
  Auto<Framework> framework;
  TransformerImpl transformer_impl = TransformerImpl::kTransformerEngine;
  std::string megatron_core;
  Fp8Format fp8_format = Fp8Format::kNone;
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;
  bool fp8_param_gather = false;
  bool fp8_dot_product_attention = false;
  bool fp8_output_proj = false;
  bool activation_func_fp8_input_store = false;
  bool tp_only_amax_red = false;
  Fp4Format fp4_format = Fp4Format::kNone;
  Fp4Recipe fp4_recipe = Fp4Recipe::kNvfp4;
  bool fp4_param_gather = false;
  CrossEntropyFusion cross_entropy_fusion = CrossEntropyFusion::kNone;
  bool gradient_accumulation_fusion = true;
  bool grad_reduce_in_bf16 = false;
  bool bias_gelu_fusion = true;
  bool bias_swiglu_fusion = true;
  bool bias_dropout_fusion = true;
  bool masked_softmax_fusion = true;
  bool attention_softmax_in_fp32 = true;
  bool rope_fusion = true;
  bool rms_norm_fusion = true;
  Auto<bool> attention_mask_in_dataloader;
  bool deterministic_mode = false;
  Auto<bool> fill_uninitialized_memory;
  Auto<bool> check_for_nan_in_loss_and_grad;
  int64_t empty_unused_memory_level = 0;
  CudaGraphImpl cuda_graph_impl = CudaGraphImpl::kNone;
  std::vector<std::string> cuda_graph_modules;
  TokenDispatcher moe_token_dispatcher_type = TokenDispatcher::kAllToAll;
  FlexBackend moe_flex_dispatcher_backend = FlexBackend::kDeepEp;
  Auto<int64_t> moe_flex_dispatcher_num_sms;
  RouterDtype moe_router_dtype = RouterDtype::kOfTokens;
  bool moe_router_fusion = false;
  bool moe_grouped_gemm = true;
  std::optional<double> moe_expert_capacity_factor;
  bool moe_pad_expert_input_to_capacity = false;
  bool use_transformer_engine_op_fuser = false;
  int64_t moe_mlp_glu_interleave_size = 0;  ///< 0: gate and value are not interleaved
  std::optional<double> moe_expert_rank_capacity_factor;
  bool moe_paged_stash = false;
  int64_t moe_paged_stash_page_size = 64;
  double moe_paged_stash_buffer_size_factor_cuda = 1.1;
  double moe_paged_stash_buffer_size_factor_cpu = 0;
  Auto<int64_t> make_vocab_size_divisible_by;
  std::optional<int64_t> steps;
  std::optional<int64_t> tokens;
  int64_t seed = 1234;

  /// Whether adapters (LoRA) are trained beside weights that do not change.
  bool has_adapters() const { return lora_rank > 0; }
  /// The type that whole parameters which are trained, their gradients and the optimizer's state
  /// have. That of adapters is said by AdapterKind.
  Dtype parameter_dtype() const;
  /// The type of whole parameters that are not trained.
  Dtype frozen_dtype() const { return has_adapters() ? dtype : parameter_dtype(); }
  bool fills_empty_tensors() const { return deterministic_mode && fill_uninitialized_memory; }
};

/// How often failures stop a training, and what they cost. For empty fields the estimate takes
/// published or assumed numbers, and says so.
struct ReliabilityConfig {
  std::optional<double> gpu_hours_between_failures;
  std::optional<double> restart_seconds;
  std::optional<double> checkpoint_seconds;
  std::optional<int64_t> save_interval;
};

/// CUDA_MODULE_LOADING: each kernel is loaded at its first use (CUDA 11.7 and later), or all
/// kernels are loaded at the start.
enum class ModuleLoading { kLazy, kEager };
constexpr std::array<EnumName<ModuleLoading>, 2> enum_names(ModuleLoading) {
  return {{{ModuleLoading::kLazy, "lazy"}, {ModuleLoading::kEager, "eager"}}};
}

struct MemoryConfig {
  std::string allocator;
  ModuleLoading cuda_module_loading = ModuleLoading::kLazy;
  std::string cublas_workspace;
  int64_t headroom_bytes = 0;
};

/// Settings that change how long things take, but not what a rank holds.
struct TimeConfig {
  std::string calibration;
  bool launch_blocking = false;
  double data_loading_seconds = 0;
  std::optional<double> cpu_adam_parameters_per_second;
};

/// A resolved plan. After resolve_plan() no Auto below is open. An empty optional means that there
/// is no such thing: no spine, no price, no limit on the tokens of an expert.
struct Plan {
  std::string name;
  std::string model_preset;  ///< "" if the plan gives all fields of its model
  ModelConfig model;
  ClusterConfig cluster;
  ParallelConfig parallelism;
  TrainingConfig training;
  MemoryConfig memory;
  TimeConfig time;
  ReliabilityConfig reliability;

  int64_t world_size() const { return cluster.world_size(); }
  int64_t data_parallel_size() const { return parallelism.data; }
  /// Number of ranks that hold the same parameters and sum their gradients: data x context.
  int64_t replicas() const { return data_parallel_size() * parallelism.context; }
  /// Number of ranks among which ZeRO divides the state of the same parameters: those of one
  /// instance of the distributed optimizer, or of one of FSDP2's replicas.
  int64_t shards() const { return replicas() / parallelism.num_distributed_optimizer_instances; }
  int64_t expert_tensor_size() const { return parallelism.expert_tensor; }
  /// Number of ranks that hold the same experts of a stage.
  int64_t expert_replicas() const {
    return parallelism.tensor * replicas() / (expert_tensor_size() * parallelism.expert);
  }
  /// As shards(), of experts.
  int64_t expert_shards() const {
    return expert_replicas() / parallelism.num_distributed_optimizer_instances;
  }
  int64_t experts_of_rank() const { return model.num_experts / parallelism.expert; }
  /// Rows of the residual stream on one rank: the whole sequence, or its part under context and
  /// sequence parallelism.
  int64_t local_sequence() const {
    const int64_t rows = sequence_length() / parallelism.context;
    return rows / (parallelism.sequence_parallel ? parallelism.tensor : 1);
  }
  /// Whether the sequence is longer than the window of the model's attention.
  bool exceeds_window() const {
    return model.sliding_window > 0 && sequence_length() > model.sliding_window;
  }
  /// Whether the plan uses FSDP2, in which each data rank keeps a part of every parameter.
  bool fully_sharded() const;
  /// Whether its stages are those of torch.distributed.pipelining.
  bool torch_pipeline() const;
  int64_t micro_batches() const;
  int64_t sequence_length() const { return training.sequence_length; }
  int64_t global_batch_size() const { return training.global_batch_size; }
  int64_t tokens_per_step() const { return global_batch_size() * sequence_length(); }
  /// Rows of the whole embedding, with padding.
  int64_t padded_vocab_size() const;
  /// Number of layers of each virtual stage, in model order. There are pipeline x virtual_stages
  /// entries; entry c x pipeline + s is chunk c of stage s.
  std::vector<int64_t> layers_of_virtual_stages() const;
  /// The virtual stage that has the final norm: the last one, or that of the last layer where
  /// layers of multi-token prediction follow, which read what it gives
  /// (has_final_layernorm_in_this_stage in megatron/core/transformer/transformer_block.py).
  int64_t virtual_stage_of_final_norm() const;
  /// Number of layers of each chunk of `stage`.
  std::vector<int64_t> layers_of_chunks(int64_t stage) const;
  /// For each layer of `stage`, whether it has experts.
  std::vector<bool> expert_layers_of_stage(int64_t stage) const;
  /// Number of elements at which a gradient bucket is closed.
  int64_t bucket_elements() const;
};

/// The resolved plan as JSON with all its fields; resolve_plan() reads it back.
Json to_json(const Plan& plan);

}  // namespace estimator
