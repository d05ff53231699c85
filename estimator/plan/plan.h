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

#include "estimator/base/dtype.h"
#include "estimator/base/fields.h"
#include "estimator/plan/model_config.h"

namespace estimator {

/// Ranks along an axis, machines, layers.
inline constexpr Range kDegree = {1, 1e6};
/// One dimension of a batch or of the model.
inline constexpr Range kSize = {1, 1e9};

enum class Optimizer { kAdamw, kSgd };
constexpr std::array<EnumName<Optimizer>, 2> enum_names(Optimizer) {
  return {{{Optimizer::kAdamw, "adamw"}, {Optimizer::kSgd, "sgd"}}};
}

/// full recomputes whole layers from their input; what selective recomputes is the dialect's: see
/// recompute_choice.h.
enum class Recompute { kNone, kSelective, kFull };
constexpr std::array<EnumName<Recompute>, 3> enum_names(Recompute) {
  return {{{Recompute::kNone, "none"},
           {Recompute::kSelective, "selective"},
           {Recompute::kFull, "full"}}};
}

/// flash is the flash-attn kernel, flash1 its first version, in CUDA or in Triton (it keeps the
/// same), fused is cuDNN's (it writes the output where the next product reads it), unfused
/// materialises the weights.
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

/// Whose kernels the shard is built from: what they keep for backward differs.
/// See dialects.h for what each means.
enum class Dialect { kMegatronLm, kMegatronDeepspeed, kNanotron, kTorchtitan, kInternevo, kPlain };
constexpr std::array<EnumName<Dialect>, 6> enum_names(Dialect) {
  return {{{Dialect::kMegatronLm, "megatron-lm"},
           {Dialect::kMegatronDeepspeed, "megatron-deepspeed"},
           {Dialect::kNanotron, "nanotron"},
           {Dialect::kTorchtitan, "torchtitan"},
           {Dialect::kInternevo, "internevo"},
           {Dialect::kPlain, "plain"}}};
}

/// 1f1b with virtual stages is interleaved. What each does: estimator/schedule/pipeline_schedule.h.
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

/// How tokens come to their experts, Megatron-LM's --moe-token-dispatcher-type: alltoall sends each
/// to the ranks of its experts, allgather gives all tokens to all ranks, flex is DeepEP's or
/// HybridEP's.
enum class TokenDispatcher { kAllToAll, kAllGather, kFlex };
constexpr std::array<EnumName<TokenDispatcher>, 3> enum_names(TokenDispatcher) {
  return {{{TokenDispatcher::kAllToAll, "alltoall"},
           {TokenDispatcher::kAllGather, "allgather"},
           {TokenDispatcher::kFlex, "flex"}}};
}

struct ClusterConfig {
  std::string gpu;
  std::optional<int64_t> nodes;
  std::optional<int64_t> gpus_per_node;
  std::optional<std::string> intra_link;
  std::optional<std::string> inter_link;
  std::optional<int64_t> nics_per_node;
  std::optional<int64_t> nodes_per_pod;
  double spine_oversubscription = 1;
  bool sharp = false;
  bool nvls = true;
  std::vector<std::string> nccl_tests;
  std::optional<double> gpu_deviation;
  std::optional<double> usd_per_gpu_hour;
};

template <class Visitor>
void visit_fields(Visitor& visit, ClusterConfig& cluster) {
  visit("gpu", cluster.gpu, "a GPU of `onerank list gpus`");
  visit("nodes", cluster.nodes, "machines; auto: world size / gpus_per_node", kDegree);
  visit("gpus_per_node",
        cluster.gpus_per_node,
        "GPUs of one machine; auto: 8, or the world if smaller",
        kDegree);
  visit("intra_link",
        cluster.intra_link,
        "link inside a machine (`onerank list links`); auto: the GPU's");
  visit("inter_link", cluster.inter_link, "NIC between machines; auto: the usual one for the GPU");
  visit("nics_per_node",
        cluster.nics_per_node,
        "NICs of one machine; auto: as many as the link's machines have",
        kDegree);
  visit("nodes_per_pod",
        cluster.nodes_per_pod,
        "machines below one spine switch at full bandwidth; auto: all",
        kDegree);
  visit("spine_oversubscription",
        cluster.spine_oversubscription,
        "bandwidth inside a pod over bandwidth out of it: 7 for 7:1",
        Range{1, 1000, "1 for a network without oversubscription, 7 for 7:1"});
  visit("sharp", cluster.sharp, "the network's switches reduce (InfiniBand SHARP, NCCL's CollNet)");
  visit("nvls", cluster.nvls, "NVSwitches that can reduce do (NCCL_NVLS_ENABLE)");
  visit("nccl_tests",
        cluster.nccl_tests,
        "files that nccl-tests wrote on such machines: used in place of the model where they fit");
  visit("gpu_deviation",
        cluster.gpu_deviation,
        "standard deviation of the GPUs' time for the same arithmetic, of its mean: ranks wait for "
        "the slowest; 0: all alike; auto: what was published of other clusters",
        Range{0, 0.2, "0.015 for 1.5 %, 0 for GPUs that are all alike"});
  visit("usd_per_gpu_hour",
        cluster.usd_per_gpu_hour,
        "price, for the cost of a training",
        Range{0, 1e6});
}

struct ParallelConfig {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t context = 1;
  ContextComm context_comm = ContextComm::kP2p;
  int64_t expert = 1;
  std::optional<int64_t> expert_tensor;
  std::optional<int64_t> data;
  bool sequence_parallel = false;
  ScheduleKind pipeline_schedule = ScheduleKind::kOneForwardOneBackward;
  int64_t virtual_stages = 1;
  std::optional<int64_t> microbatch_group_size_per_virtual_stage;
  std::vector<int64_t> layers_per_stage;
  int64_t zero_stage = 0;
  /// FSDP2: of every parameter a data rank keeps a part.
  bool fully_sharded() const { return zero_stage >= 2; }
  std::optional<int64_t> bucket_elements;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  bool overlap_p2p_communication = true;
  bool tp_comm_overlap = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, ParallelConfig& parallelism) {
  visit("tensor", parallelism.tensor, "tensor parallel size", kDegree);
  visit("pipeline", parallelism.pipeline, "pipeline parallel size (stages)", kDegree);
  visit("context", parallelism.context, "context parallel size", kDegree);
  visit("context_comm",
        parallelism.context_comm,
        "how context ranks exchange keys and values: p2p (a ring) or a2a (Ulysses)");
  visit("expert", parallelism.expert, "expert parallel size", kDegree);
  visit("expert_tensor",
        parallelism.expert_tensor,
        "tensor parallel size of the experts; auto: the tensor parallel size",
        kDegree);
  visit("data", parallelism.data, "data parallel size; auto: what is left of the world", kDegree);
  visit("sequence_parallel",
        parallelism.sequence_parallel,
        "shard norms and dropout over tensor ranks");
  visit("pipeline_schedule", parallelism.pipeline_schedule, "1f1b or gpipe");
  visit("virtual_stages",
        parallelism.virtual_stages,
        "model chunks on each stage (interleaving)",
        kDegree);
  visit("microbatch_group_size_per_virtual_stage",
        parallelism.microbatch_group_size_per_virtual_stage,
        "micro-batches that go through one chunk before the next; auto: the pipeline size");
  visit("layers_per_stage",
        parallelism.layers_per_stage,
        "layers of each stage, or of each virtual stage in model order; empty: even",
        Range{0, kDegree.most});
  visit("zero_stage",
        parallelism.zero_stage,
        "1: the distributed optimizer; 2 and 3: FSDP2, 3 frees parameters after forward");
  visit("bucket_elements",
        parallelism.bucket_elements,
        "elements of a gradient bucket; auto: Megatron's max(40e6, 1e6 x data x context)",
        Range{1, kLargestWhole});
  visit("overlap_grad_reduce",
        parallelism.overlap_grad_reduce,
        "reduce gradients during the last backward");
  visit("overlap_param_gather",
        parallelism.overlap_param_gather,
        "gather parameters during the first forward");
  visit("overlap_p2p_communication",
        parallelism.overlap_p2p_communication,
        "with virtual stages: a stage goes on while it sends");
  visit(
      "tp_comm_overlap",
      parallelism.tp_comm_overlap,
      "the tensor ranks' communication beside matrix products (TransformerEngine's user buffers)");
}

inline constexpr const char* kSelectiveByOperator = "op";

struct TrainingConfig {
  int64_t micro_batch_size = 1;
  std::optional<int64_t> global_batch_size;
  std::optional<int64_t> sequence_length;
  Dtype dtype = Dtype::kBf16;
  Optimizer optimizer = Optimizer::kAdamw;
  bool optimizer_cpu_offload = false;
  double optimizer_offload_fraction = 1;
  bool use_precision_aware_optimizer = false;
  bool overlap_cpu_optimizer_d2h_h2d = false;
  bool pin_cpu_grads = true;
  bool pin_cpu_params = true;
  Recompute recompute = Recompute::kNone;
  std::string selective_ac_option = kSelectiveByOperator;
  std::optional<Attention> attention;
  Dialect dialect = Dialect::kMegatronLm;
  TransformerImpl transformer_impl = TransformerImpl::kTransformerEngine;
  std::string megatron_core;
  CrossEntropyFusion cross_entropy_fusion = CrossEntropyFusion::kNone;
  bool gradient_accumulation_fusion = true;
  std::optional<bool> attention_mask_in_dataloader;
  bool deterministic_mode = false;
  std::optional<bool> fill_uninitialized_memory;
  std::optional<bool> check_for_nan_in_loss_and_grad;
  TokenDispatcher moe_token_dispatcher_type = TokenDispatcher::kAllToAll;
  std::optional<double> moe_expert_capacity_factor;
  bool moe_pad_expert_input_to_capacity = false;
  std::optional<int64_t> make_vocab_size_divisible_by;
  std::optional<int64_t> steps;
  std::optional<int64_t> tokens;
  int64_t seed = 1234;

  bool fills_empty_tensors() const {
    return deterministic_mode && fill_uninitialized_memory.value_or(true);
  }
};

template <class Visitor>
void visit_fields(Visitor& visit, TrainingConfig& training) {
  visit("micro_batch_size",
        training.micro_batch_size,
        "samples of one micro-batch on one data rank",
        kSize);
  visit("global_batch_size",
        training.global_batch_size,
        "samples of one step; auto: one micro-batch for each data rank",
        kSize);
  visit("sequence_length",
        training.sequence_length,
        "tokens of a sample; auto: the model's maximum, at most 8192",
        kSize);
  visit("dtype", training.dtype, "bf16, fp16 or fp32");
  visit("optimizer", training.optimizer, "adamw or sgd (with momentum)");
  visit("optimizer_cpu_offload",
        training.optimizer_cpu_offload,
        "the host keeps main weights and moments, and updates them (Megatron-LM)");
  visit("optimizer_offload_fraction",
        training.optimizer_offload_fraction,
        "of the parameters, for which it does");
  visit("use_precision_aware_optimizer",
        training.use_precision_aware_optimizer,
        "implied by optimizer_cpu_offload; not built without");
  visit("overlap_cpu_optimizer_d2h_h2d",
        training.overlap_cpu_optimizer_d2h_h2d,
        "gradients go to the host, and parameters come back, beside its updates");
  visit("pin_cpu_grads", training.pin_cpu_grads, "gradients lie in page-locked host memory");
  visit("pin_cpu_params", training.pin_cpu_params, "main weights lie in page-locked host memory");
  visit("recompute",
        training.recompute,
        "none, selective (core attention; torchtitan: see selective_ac_option) or full");
  visit("selective_ac_option",
        training.selective_ac_option,
        "torchtitan: selective recompute by operator (op), or all of every Nth layer (N)");
  visit("attention",
        training.attention,
        "flash (flash-attn), flash1 (version 1), fused (cuDNN) or unfused; auto: what the dialect "
        "takes on this GPU");
  visit("dialect", training.dialect, "whose kernels: see `onerank list dialects`");
  visit("transformer_impl",
        training.transformer_impl,
        "megatron-lm: transformer_engine, or local (Megatron-LM's own layers)");
  visit(
      "megatron_core",
      training.megatron_core,
      "megatron-lm: version of its core, 0.13.1; empty: the newest that is known, 0.14 and later");
  visit("cross_entropy_fusion",
        training.cross_entropy_fusion,
        "megatron-lm: none, native or te (TransformerEngine)");
  visit("gradient_accumulation_fusion",
        training.gradient_accumulation_fusion,
        "megatron-lm: products add weight gradients straight into the fp32 buffer");
  visit("attention_mask_in_dataloader",
        training.attention_mask_in_dataloader,
        "megatron-lm: each micro-batch carries its [b, 1, s, s] mask; auto: there it does");
  visit("deterministic_mode",
        training.deterministic_mode,
        "PyTorch's deterministic algorithms, attention's deterministic backward; megatron-lm: also "
        "NCCL's ring alone");
  visit("fill_uninitialized_memory",
        training.fill_uninitialized_memory,
        "deterministic_mode: PyTorch fills what at::empty makes; auto: not in megatron-lm");
  visit(
      "check_for_nan_in_loss_and_grad",
      training.check_for_nan_in_loss_and_grad,
      "megatron-lm: the host waits to see that each loss and each bucket's gradients are numbers; "
      "auto: there, but not in fp16");
  visit("moe_token_dispatcher_type",
        training.moe_token_dispatcher_type,
        "how tokens come to their experts: alltoall");
  visit("moe_expert_capacity_factor",
        training.moe_expert_capacity_factor,
        "tokens that an expert takes of a rank, of the mean; more are dropped; auto: none are");
  visit("moe_pad_expert_input_to_capacity",
        training.moe_pad_expert_input_to_capacity,
        "each expert gets as many tokens as it takes");
  visit("make_vocab_size_divisible_by",
        training.make_vocab_size_divisible_by,
        "pad the vocabulary to a multiple of this x tensor; 1: off; auto: 128 for megatron-lm, "
        "else 1",
        kSize);
  visit("steps", training.steps, "steps of the whole training", kCount);
  visit("tokens", training.tokens, "tokens of the whole training", kCount);
  visit("seed", training.seed, "of weights, data and dropout");
}

/// What stops a training, and what that costs. Empty: published or assumed, as the estimate says.
struct ReliabilityConfig {
  std::optional<double> gpu_hours_between_failures;
  std::optional<double> restart_seconds;
  std::optional<double> checkpoint_seconds;
  std::optional<int64_t> save_interval;
};

template <class Visitor>
void visit_fields(Visitor& visit, ReliabilityConfig& reliability) {
  visit("gpu_hours_between_failures",
        reliability.gpu_hours_between_failures,
        "mean time between failures of the job x its GPUs; auto: Llama 3's",
        Range{1e-3, 1e12});
  visit("restart_seconds",
        reliability.restart_seconds,
        "from a failure to training again: detect, restart, load",
        Range{1e-3, kSeconds.most});
  visit("checkpoint_seconds",
        reliability.checkpoint_seconds,
        "that training stands still for one checkpoint",
        Range{1e-3, kSeconds.most});
  visit("save_interval",
        reliability.save_interval,
        "steps between checkpoints; auto: Daly's best",
        Range{1, kLargestWhole});
}

/// CUDA_MODULE_LOADING: kernels are loaded when first used (CUDA 11.7 and later), or all at start.
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

template <class Visitor>
void visit_fields(Visitor& visit, MemoryConfig& memory) {
  visit("allocator", memory.allocator, "PYTORCH_CUDA_ALLOC_CONF of the job");
  visit("cuda_module_loading",
        memory.cuda_module_loading,
        "CUDA_MODULE_LOADING of the job: lazy, or eager as before CUDA 11.7");
  visit("cublas_workspace",
        memory.cublas_workspace,
        "CUBLAS_WORKSPACE_CONFIG of the job: :4096:8 is 8 x 4,096 KiB");
  visit("headroom_bytes",
        memory.headroom_bytes,
        "bytes that must stay free for the verdict to be yes",
        kBytes);
}

/// What decides how long things take and changes nothing that a rank holds.
struct TimeConfig {
  std::string calibration;
  bool launch_blocking = false;
  double data_loading_seconds = 0;
  std::optional<double> cpu_adam_parameters_per_second;
};

template <class Visitor>
void visit_fields(Visitor& visit, TimeConfig& time) {
  visit("calibration", time.calibration, "file of `onerank calibrate` to price kernels with");
  visit("launch_blocking",
        time.launch_blocking,
        "CUDA_LAUNCH_BLOCKING=1 of the job: the host waits for every kernel");
  visit("data_loading_seconds",
        time.data_loading_seconds,
        "that a rank's data loader takes for one micro-batch, its workers side by side; it works "
        "ahead, and a step waits only where all its micro-batches take longer",
        Range{0, 1e6});
  visit("cpu_adam_parameters_per_second",
        time.cpu_adam_parameters_per_second,
        "that the CPUs of one machine update together, with optimizer_cpu_offload; auto: "
        "published",
        Range{1, 1e15});
}

/// A resolved plan: after resolve_plan() every optional below that the code needs is filled in.
struct Plan {
  std::string name;
  std::string model_preset;  ///< "" when the plan spells its model out
  ModelConfig model;
  ClusterConfig cluster;
  ParallelConfig parallelism;
  TrainingConfig training;
  MemoryConfig memory;
  TimeConfig time;
  ReliabilityConfig reliability;

  int64_t world_size() const { return *cluster.nodes * *cluster.gpus_per_node; }
  int64_t data_parallel_size() const { return *parallelism.data; }
  /// Ranks that hold the same parameters, and sum their gradients: data x context.
  int64_t replicas() const { return data_parallel_size() * parallelism.context; }
  int64_t expert_tensor_size() const { return parallelism.expert_tensor.value_or(1); }
  /// Ranks that hold the same experts of a stage.
  int64_t expert_replicas() const {
    return parallelism.tensor * replicas() / (expert_tensor_size() * parallelism.expert);
  }
  int64_t experts_of_rank() const { return model.num_experts / parallelism.expert; }
  /// Rows of the residual stream on one rank: a sequence, or its part under context and sequence
  /// parallelism.
  int64_t local_sequence() const {
    const int64_t rows = sequence_length() / parallelism.context;
    return rows / (parallelism.sequence_parallel ? parallelism.tensor : 1);
  }
  int64_t micro_batches() const;
  int64_t sequence_length() const { return *training.sequence_length; }
  int64_t global_batch_size() const { return *training.global_batch_size; }
  int64_t tokens_per_step() const { return global_batch_size() * sequence_length(); }
  /// Rows of the whole embedding, with padding.
  int64_t padded_vocab_size() const;
  /// Layers of each virtual stage in model order: pipeline x virtual_stages of them, piece
  /// c x pipeline + s being chunk c of stage s.
  std::vector<int64_t> layers_of_virtual_stages() const;
  /// Layers of each chunk of `stage`.
  std::vector<int64_t> layers_of_chunks(int64_t stage) const;
  /// Of each layer of `stage`, whether it has experts.
  std::vector<bool> expert_layers_of_stage(int64_t stage) const;
  /// Elements after which a gradient bucket is closed.
  int64_t bucket_elements() const;
};

/// What the environment or flags say beside the plan.
struct PlanContext {
  std::string origin = "plan";        ///< names the document in messages
  std::optional<int64_t> world_size;  ///< WORLD_SIZE or --world-size
  std::string world_size_origin = "WORLD_SIZE";
};

/// Reads and resolves. Throws UserError with every problem found.
Plan resolve_plan(const Json& tree, const PlanContext& context);

/// The resolved plan as JSON, every field spelled out; resolve_plan() reads it back.
Json to_json(const Plan& plan);

}  // namespace estimator
