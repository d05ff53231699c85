// What each framework means for the shard: one row of traits for each. The shard and `onerank list
// frameworks` read them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

/// The buffers of the logits' shape that the loss needs: one fp32 buffer, which holds first the
/// softmax and then the gradient; two such buffers, because the input is kept too; or those of
/// PyTorch's own operators (log-softmax and its gradient). Over tensor ranks kTorch is the one
/// buffer again, and kTorchParallel PyTorch's loss_parallel.
enum class LossBuffers { kOne, kTwo, kTorch, kTorchParallel };
constexpr std::array<EnumName<LossBuffers>, 4> enum_names(LossBuffers) {
  return {{{LossBuffers::kOne, "one"},
           {LossBuffers::kTwo, "two"},
           {LossBuffers::kTorch, "torch"},
           {LossBuffers::kTorchParallel, "torch_parallel"}}};
}

/// The type in which gradients are summed over micro-batches.
enum class GradientType { kFp32, kParameter };
constexpr std::array<EnumName<GradientType>, 2> enum_names(GradientType) {
  return {{{GradientType::kFp32, "fp32"}, {GradientType::kParameter, "parameter"}}};
}

/// How long the gradients that autograd makes are kept. kAdded: each is added to a separate sum and
/// freed at once. kUntilSummed: they are added and freed when the backward of the micro-batch is
/// over. kUntilZeroed: as in plain PyTorch they are the sum themselves, and are freed when the next
/// iteration begins. kDeepspeed (DeepSpeed of 2022): in fp16 and fp32 (ZeRO stage 1) they are the
/// sum themselves; in bf16 they are added to an fp32 sum after the backward, and kept until the
/// next one (BF16Optimizer).
enum class GradientKeeping { kAdded, kUntilSummed, kUntilZeroed, kDeepspeed };
constexpr std::array<EnumName<GradientKeeping>, 4> enum_names(GradientKeeping) {
  return {{{GradientKeeping::kAdded, "added"},
           {GradientKeeping::kUntilSummed, "until_summed"},
           {GradientKeeping::kUntilZeroed, "until_zeroed"},
           {GradientKeeping::kDeepspeed, "deepspeed"}}};
}

/// What a stage keeps of its output tensor, after sending it, until its backward: nothing, all of
/// it, or the part of this tensor rank.
enum class StageOutputs { kFreed, kKept, kPartitioned };
constexpr std::array<EnumName<StageOutputs>, 3> enum_names(StageOutputs) {
  return {{{StageOutputs::kFreed, "freed"},
           {StageOutputs::kKept, "kept"},
           {StageOutputs::kPartitioned, "partitioned"}}};
}

/// When the tables of rotary positions are made: with the model; by each chunk of layers in its
/// first forward; or in every forward, for which they are freed again.
enum class RotaryMade { kWithModel, kAtFirstUse, kInEachForward };
constexpr std::array<EnumName<RotaryMade>, 3> enum_names(RotaryMade) {
  return {{{RotaryMade::kWithModel, "with_model"},
           {RotaryMade::kAtFirstUse, "at_first_use"},
           {RotaryMade::kInEachForward, "in_each_forward"}}};
}

/// Whose adapters (LoRA) are trained beside weights that do not change; see AdapterKind.
enum class Adapters { kWithout, kPeft, kMegatronBridge };
constexpr std::array<EnumName<Adapters>, 3> enum_names(Adapters) {
  return {{{Adapters::kWithout, "none"},
           {Adapters::kPeft, "peft"},
           {Adapters::kMegatronBridge, "megatron_bridge"}}};
}

struct FrameworkTraits {
  Framework framework = Framework::kPlain;
  std::string stands_for;
  bool transformer_engine = false;
  bool fused_gated_activation = false;
  bool fused_rotary = false;
  bool complex_rotary = false;
  RotaryMade rotary_made = RotaryMade::kWithModel;
  bool batch_first_attention = false;
  bool query_keeps_packed = false;
  bool separate_products = false;
  bool whole_embedding_gradient = false;
  bool autograd_products = false;
  bool norm_of_operators = false;
  bool gelu_new_of_operators = false;
  bool norms_last = false;
  bool functional_collectives = false;
  bool torch_attention = false;
  bool cudnn_attention_first = false;
  bool returns_logits = false;
  bool reads_mask = false;
  bool reads_losses = false;
  bool decay_groups = false;
  bool clips_on_device = false;
  bool mixed_precision = false;
  bool data_parallel_only = false;
  bool selective_by_operator = false;
  bool fused_weight_gradient = false;
  bool keeps_gathered_input = false;
  bool overlapped_linear_backward = false;
  StageOutputs stage_outputs = StageOutputs::kFreed;
  LossBuffers loss_buffers = LossBuffers::kTorch;
  GradientType gradient_type = GradientType::kFp32;
  GradientKeeping gradient_keeping = GradientKeeping::kAdded;
  bool master_weights = true;
  bool reducer_buckets = false;
  int64_t first_bucket_bytes = 0;
  int64_t bucket_bytes = 0;
  bool finds_unused_parameters = false;
  bool fully_sharded = false;
  bool root_unit = false;
  bool checkpoints_units = false;
  bool reduces_in_compute_type = false;
  bool accumulates_whole_gradients = false;
  bool deepspeed_engine = false;
  bool whole_parameters = false;
  bool always_buckets = true;
  bool shared_step_counter = false;
  bool optimizer_cpu_offload = false;
  bool experts = false;
  bool stacked_experts = false;
  bool overlapped_sends = true;
  bool synchronized_sends = false;
  bool overlap_flags = false;
  bool synchronized_steps = false;
  bool waits_for_tokens = false;
  bool partitioned_sends = false;
  bool schedule_variables = false;
  bool projection_first = false;
  bool holds_split_heads = false;
  bool megatron_fusions = false;
  bool compiled_functions = false;
  bool mask_in_dataloader = false;
  bool single_messages = false;
  bool stages_by_cost = false;
  bool torch_pipeline = false;
  bool latent_attention = false;
  bool multi_token_prediction = false;
  bool parallel_residual = false;
  bool layer_variants = false;
  bool window_masks = false;
  bool window_kernels = false;
  bool softmax_offsets = false;
  bool quick_geglu = false;
  bool asynchronous_linear = false;
  bool divides_saved_inputs = false;
  bool shared_query_groups = false;
  bool unfused_attention = false;
  bool chained_optimizers = false;
  Adapters adapters = Adapters::kWithout;
  bool copies_before_cast = false;
  bool checks_for_nan = false;
  bool rings_when_deterministic = false;
  bool fills_when_deterministic = true;
  int64_t vocabulary_multiple = 1;
  std::vector<std::string> notes;
};

template <class Visitor>
void visit_fields(Visitor& visit, FrameworkTraits& traits) {
  visit("name", traits.framework, "as training.framework");
  visit("stands_for", traits.stands_for, "what it stands for");
  visit(
      "transformer_engine", traits.transformer_engine, "layers can be those of TransformerEngine");
  visit("fused_gated_activation",
        traits.fused_gated_activation,
        "SwiGLU and GEGLU keep only their input");
  visit("fused_rotary", traits.fused_rotary, "rotary positions have no temporaries");
  visit("complex_rotary",
        traits.complex_rotary,
        "rotary positions are products of fp32 complex numbers");
  visit("rotary_made", traits.rotary_made, "when the tables of rotary positions are made");
  visit("batch_first_attention",
        traits.batch_first_attention,
        "flash attention copies its inputs and its output between [s, b] and [b, s]");
  visit("query_keeps_packed",
        traits.query_keeps_packed,
        "the query that attention keeps is a part of a copy of query, key and value");
  visit("separate_products",
        traits.separate_products,
        "query, key and value, and gate and up of a gated MLP, are separate matrix products, for "
        "which a sequence is gathered once, and kept");
  visit("whole_embedding_gradient",
        traits.whole_embedding_gradient,
        "each tensor rank makes the embedding's gradient of the whole vocabulary");
  visit("autograd_products",
        traits.autograd_products,
        "linear layers are PyTorch's own, under its own autograd and autocast");
  visit("norm_of_operators", traits.norm_of_operators, "RMSNorm is several operators in fp32");
  visit("gelu_new_of_operators",
        traits.gelu_new_of_operators,
        "the activation gelu_new is several operators, else it is gelu");
  visit("norms_last", traits.norms_last, "a layer's last parameters are those of its norms");
  visit("functional_collectives",
        traits.functional_collectives,
        "collectives between tensor ranks are DTensors': on a stream of their own, along dim 0");
  visit("torch_attention",
        traits.torch_attention,
        "PyTorch chooses the kernel of attention: cuDNN's on Hopper and Blackwell, else flash");
  visit("cudnn_attention_first",
        traits.cudnn_attention_first,
        "attention asks for cuDNN's kernel first, and then for flash");
  visit("returns_logits",
        traits.returns_logits,
        "the forward returns the logits beside the loss, in fp32 after autocast");
  visit("reads_mask",
        traits.reads_mask,
        "in each forward the host reads whether the batch's mask has only ones");
  visit("reads_losses",
        traits.reads_losses,
        "after each backward the host reads whether the loss is a number");
  visit("decay_groups",
        traits.decay_groups,
        "the optimizer has two groups of parameters, unless the plan says no: norms do not decay");
  visit("clips_on_device",
        traits.clips_on_device,
        "the GPU computes by what gradients are multiplied to clip them");
  visit("mixed_precision",
        traits.mixed_precision,
        "parameters are fp32 and computation is in 16 bits, unless the plan says no");
  visit("data_parallel_only", traits.data_parallel_only, "the ranks divide the batch alone");
  visit("selective_by_operator",
        traits.selective_by_operator,
        "selective recompute keeps the outputs of listed operators, not all but core attention");
  visit("fused_weight_gradient",
        traits.fused_weight_gradient,
        "products add weight gradients into the gradient buffer");
  visit("keeps_gathered_input",
        traits.keeps_gathered_input,
        "under sequence parallelism the gathered input is kept for backward");
  visit("overlapped_linear_backward",
        traits.overlapped_linear_backward,
        "a column-parallel layer's collectives run beside the products of its backward");
  visit("stage_outputs", traits.stage_outputs, "what a stage keeps of its output until backward");
  visit("loss_buffers", traits.loss_buffers, "buffers of the logits' shape in the loss");
  visit("gradient_type", traits.gradient_type, "type in which gradients are summed");
  visit("gradient_keeping", traits.gradient_keeping, "how long autograd's own gradients stay");
  visit("master_weights", traits.master_weights, "the optimizer has fp32 copies of the parameters");
  visit("reducer_buckets",
        traits.reducer_buckets,
        "without ZeRO: DistributedDataParallel's buckets, as large as the parameters");
  visit("first_bucket_bytes",
        traits.first_bucket_bytes,
        "size at which the first of these buckets is closed; 0: as the others");
  visit("bucket_bytes", traits.bucket_bytes, "the usual size of the others; 0: the plan's default");
  visit("finds_unused_parameters",
        traits.finds_unused_parameters,
        "without recompute DistributedDataParallel looks for unused parameters: it keeps its first "
        "buckets, copies the outputs and reduces a map of the parameters");
  visit("fully_sharded",
        traits.fully_sharded,
        "ZeRO stages 2 and 3 are FSDP2: fp32 parts, computation in the plan's dtype");
  visit("root_unit",
        traits.root_unit,
        "FSDP2: embedding, final norm, head and loss are one unit, the whole model's");
  visit("checkpoints_units",
        traits.checkpoints_units,
        "FSDP2: recompute runs a layer with the hooks of its unit, which are not around it");
  visit("reduces_in_compute_type",
        traits.reduces_in_compute_type,
        "FSDP2: gradients are reduced in the type of the computation, not in fp32");
  visit("accumulates_whole_gradients",
        traits.accumulates_whole_gradients,
        "FSDP2: gradients stay whole until the last micro-batch, and are reduced once");
  visit("deepspeed_engine",
        traits.deepspeed_engine,
        "ZeRO stages 1 to 3 are those of DeepSpeed's engine");
  visit("whole_parameters",
        traits.whole_parameters,
        "ZeRO stage 1: each data rank updates whole parameters and broadcasts them");
  visit("always_buckets", traits.always_buckets, "gradients are cut into buckets on every stage");
  visit("shared_step_counter",
        traits.shared_step_counter,
        "the optimizer has one step counter, not one for each parameter");
  visit("optimizer_cpu_offload",
        traits.optimizer_cpu_offload,
        "the distributed optimizer can be offloaded to the host");
  visit("experts", traits.experts, "layers may be mixtures of experts");
  visit("stacked_experts",
        traits.stacked_experts,
        "the experts of a layer are three tensors, which FSDP2 cuts, and three grouped products");
  visit("overlapped_sends",
        traits.overlapped_sends,
        "without interleaving: a pipeline stage goes on while it sends");
  visit("synchronized_sends",
        traits.synchronized_sends,
        "a pipeline stage's host waits for its GPU whenever it has sent or received, but where "
        "messages overlap");
  visit("waits_for_tokens",
        traits.waits_for_tokens,
        "the host waits for its GPU before each micro-batch, whose tokens it copies from memory "
        "that is not page-locked");
  visit("overlap_flags",
        traits.overlap_flags,
        "has flags that reduce gradients during the last backward and gather parameters during the "
        "first forward");
  visit("synchronized_steps",
        traits.synchronized_steps,
        "the host waits for its GPU at the end of a step");
  visit("partitioned_sends",
        traits.partitioned_sends,
        "each tensor rank sends its part of what a stage hands on, and the receivers gather it");
  visit("schedule_variables",
        traits.schedule_variables,
        "pipeline stages hold received tensors and gradients for longer than backward needs them");
  visit("projection_first",
        traits.projection_first,
        "a layer's first parameters are those of its attention's output projection");
  visit("holds_split_heads",
        traits.holds_split_heads,
        "attention holds query, key and value as its product gave them until it returns");
  visit("megatron_fusions",
        traits.megatron_fusions,
        "one kernel for scale, mask and softmax, and one for bias, dropout and residual");
  visit("compiled_functions",
        traits.compiled_functions,
        "torch.compile makes the kernels of small functions, and tries them at their first call");
  visit("mask_in_dataloader",
        traits.mask_in_dataloader,
        "each micro-batch carries its attention mask, unless the plan says that it does not");
  visit("single_messages",
        traits.single_messages,
        "interleaved stages that go on while they send post each message alone");
  visit("stages_by_cost",
        traits.stages_by_cost,
        "layers are divided among stages by the cost of their matrix products, including those of "
        "the head");
  visit("torch_pipeline",
        traits.torch_pipeline,
        "stages are those of torch.distributed.pipelining, and embedding and head count as a layer "
        "each where layers are dealt to them");
  visit("latent_attention", traits.latent_attention, "attention may be multi-latent");
  visit("multi_token_prediction",
        traits.multi_token_prediction,
        "layers after the last one may predict more tokens");
  visit("parallel_residual",
        traits.parallel_residual,
        "attention and MLP of a layer may read the same input, with one reduction for both");
  visit("layer_variants",
        traits.layer_variants,
        "norms may be after attention and MLP, over all heads, or without parameters, and biases "
        "in attention, MLP or output layer alone; logits may have a soft cap");
  visit("window_masks",
        traits.window_masks,
        "attention in a window of the sequence reads a mask, by PyTorch's kernels");
  visit("window_kernels",
        traits.window_kernels,
        "cuDNN's kernel skips what lies outside of attention's window");
  visit("softmax_offsets",
        traits.softmax_offsets,
        "cuDNN's kernel takes a learned number more into each head's softmax");
  visit("quick_geglu", traits.quick_geglu, "gated activations may be quick_geglu (gpt-oss)");
  visit("asynchronous_linear",
        traits.asynchronous_linear,
        "linear layers can multiply their own part of the sequence while the rest is gathered");
  visit("divides_saved_inputs",
        traits.divides_saved_inputs,
        "tensor ranks can each keep a part of a recomputed layer's input");
  visit("shared_query_groups",
        traits.shared_query_groups,
        "tensor ranks may use the same key/value head, where there are fewer heads than ranks");
  visit("unfused_attention",
        traits.unfused_attention,
        "attention is unfused unless the plan names a kernel");
  visit("chained_optimizers",
        traits.chained_optimizers,
        "experts have an optimizer of their own, and each of the two gathers all parameters");
  visit("adapters", traits.adapters, "whose adapters (LoRA) can be trained");
  visit("copies_before_cast",
        traits.copies_before_cast,
        "the optimizer copies a parameter's part before it casts it to fp32");
  visit("checks_for_nan",
        traits.checks_for_nan,
        "looks for NaN in loss and gradients unless the plan says no, but not in fp16");
  visit("rings_when_deterministic",
        traits.rings_when_deterministic,
        "deterministic runs let NCCL use rings alone");
  visit("fills_when_deterministic",
        traits.fills_when_deterministic,
        "deterministic runs let PyTorch fill new tensors, unless the plan says no");
  visit("vocabulary_multiple",
        traits.vocabulary_multiple,
        "the vocabulary is padded to a multiple of this x tensor");
  visit("notes", traits.notes, "what else it means, and what is simplified");
}

const std::vector<FrameworkTraits>& frameworks();
const FrameworkTraits& traits_of(Framework framework);

/// The part of a transformer layer that is run again in backward.
enum class Recomputed {
  kNothing,
  kModules,            ///< Megatron-LM's selective: see recomputes()
  kUnlistedOperators,  ///< TorchTitan's selective: all but the listed operators
  kLayer,              ///< full: everything, from the layer's input
};

/// Parts of a layer that Megatron-LM's selective recompute can run again (recompute_modules in
/// megatron/core/transformer/transformer_config.py, d98e8a6).
enum class RecomputeModule {
  kCoreAttention,
  kMlp,  ///< of a layer without experts
  kMoe,  ///< router, dispatch, experts and combine
  kSharedExperts,
  kNorms,             ///< those that no product of TransformerEngine has before it
  kExpertActivation,  ///< needs the grouped products
  kLatentUp,          ///< multi-latent attention: norms and up projections of latents, positions
};
constexpr std::array<EnumName<RecomputeModule>, 7> enum_names(RecomputeModule) {
  return {{{RecomputeModule::kCoreAttention, "core_attn"},
           {RecomputeModule::kMlp, "mlp"},
           {RecomputeModule::kMoe, "moe"},
           {RecomputeModule::kSharedExperts, "shared_experts"},
           {RecomputeModule::kNorms, "layernorm"},
           {RecomputeModule::kExpertActivation, "moe_act"},
           {RecomputeModule::kLatentUp, "mla_up_proj"}}};
}

/// Whether the plan's selective recompute names this part; core attention also where it names none.
bool recomputes(const Plan& plan, RecomputeModule module);

/// A layer by its numbers in the model, on its rank and in its chunk of a stage, each from 0.
/// Layers of multi-token prediction are counted after the others.
struct LayerNumber {
  int64_t of_model = 0;
  int64_t of_rank = 0;
  int64_t of_chunk = 0;

  LayerNumber after(int64_t layers) const {
    return {of_model + layers, of_rank + layers, of_chunk + layers};
  }
};

/// What is recomputed of a layer. Megatron-LM's block recompute leaves out layers of multi-token
/// prediction. TorchTitan's selective_ac_option N means full recompute of every Nth layer of a
/// rank, and 0 of all layers (_apply_layer_sac in torchtitan/distributed/activation_checkpoint.py
/// of v0.2.2).
Recomputed recomputed(const Plan& plan, const LayerNumber& layer);

/// How many of a chunk's layers full recompute runs again; 0 without it.
int64_t recomputed_layers(const TrainingConfig& training, int64_t of_chunk);

/// How many layers are recomputed as one, from the input of the first.
int64_t layers_of_checkpoint(const TrainingConfig& training);

}  // namespace estimator
