#include "estimator/plan/frameworks.h"

#include <algorithm>
#include <stdexcept>

namespace estimator {
namespace {

FrameworkTraits megatron_lm() {
  return {
      .framework = Framework::kMegatronLm,
      .stands_for = "Megatron-LM core with TransformerEngine 2.9 to 2.11",
      .transformer_engine = true,
      .fused_gated_activation = true,
      .fused_rotary = true,
      .rotary_made = RotaryMade::kAtFirstUse,  // RotaryEmbedding.forward in rotary_pos_embedding.py
      .batch_first_attention = true,
      .fused_weight_gradient = true,
      // LinearWithGradAccumulationAndAsyncCommunication in megatron/core/tensor_parallel/layers.py;
      // async_op in _Linear and _LayerNormLinear of TransformerEngine
      .overlapped_linear_backward = true,
      .loss_buffers = LossBuffers::kOne,
      .always_buckets = false,
      .shared_step_counter = true,
      .optimizer_cpu_offload = true,
      .experts = true,
      .overlapped_sends = false,
      .synchronized_sends = true,  // batch_p2p_sync of p2p_communication.py
      .overlap_flags = true,       // megatron/training/arguments.py
      .synchronized_steps = true,  // logical_and_across_model_parallel_group in train_step
      .schedule_variables = true,
      .projection_first = true,
      .holds_split_heads = true,
      .megatron_fusions = true,
      .compiled_functions = true,  // jit_fuser in megatron/core/jit.py
      .mask_in_dataloader = true,
      .single_messages = true,
      .latent_attention = true,
      .multi_token_prediction = true,
      .window_kernels = true,
      .softmax_offsets = true,
      .quick_geglu = true,
      .divides_saved_inputs = true,
      .shared_query_groups = true,
      .chained_optimizers = true,
      .adapters = Adapters::kMegatronBridge,
      .copies_before_cast = true,
      .checks_for_nan = true,
      .rings_when_deterministic = true,   // megatron/training/determinism.py
      .fills_when_deterministic = false,  // pull request 7093 (September 2026) turned it off
      .vocabulary_multiple = 128,
      .notes = {
          "TransformerEngine's cuBLAS workspace and, with gradient accumulation fusion, a dummy "
          "gradient for each weight shape",
          "flash attention copies query, key, value and output between [s, b] and [b, s]; fused "
          "(cuDNN) does not; cuDNN's own workspaces are not public and not counted",
          "multi-latent attention: each tensor rank has the whole down projections, the norms of "
          "the latents are part of the up projections, and two fused kernels apply the rotary "
          "positions",
          "the output layer gathers the sequence into Megatron-LM's global memory buffer",
          "gradient buffer in fp32 (grad_reduce_in_bf16: in 16 bits, of which the step's fp32 "
          "copies "
          "last until the next one), padded as the distributed optimizer pads it; pipeline outputs "
          "are freed (deallocate_pipeline_outputs)",
          "transformer_impl local: Megatron-LM's own layers, without TransformerEngine",
          "fp8_format: linear layers but, without fp8_output_proj, the output layer quantize "
          "inputs, weights and output "
          "gradients; weights in 8 bits are kept beside those in 16, on Hopper transposed, too; "
          "rows of each expert are padded to a multiple of 16 (mxfp8: 32); with the recipe delayed "
          "the ranks of a stage agree on the largest elements of all its layers",
          "fp4_format: the same in 4 bits, with a transposed copy and scales of 16 elements, after "
          "Hadamard transforms; rows of each expert are padded to a multiple of 128",
          "cross_entropy_fusion none, native (compiled; has a second fp32 buffer for a short time) "
          "or te (the gradient overwrites the logits)",
          "a plan is a job's first launch: PyTorch's Inductor tunes the kernels of compiled "
          "functions (activation, bias with dropout and residual, cross_entropy_fusion native) at "
          "their first call, with a tensor of the L2 cache's size and copies of what they change; "
          "those of attention over context ranks are not counted",
          "cuda_graph_impl: the pool of the graphs is that of a stream, on which their kernels run "
          "one by one; what they hold counts as allocated, and in PyTorch's statistics of a replay "
          "as reserved alone; the warm-up before the capture is not run, and tokens that a graph "
          "of "
          "the whole iteration keeps for each micro-batch are not counted",
          "moe_token_dispatcher_type flex: DeepEP (its version 1) and HybridEP; as many tokens "
          "arrive as in the mean of experts that are drawn uniformly",
          "lora_rank: Megatron-Bridge's adapters (LoRA of its peft/), two of Megatron-LM's own "
          "layers in 16 bits beside each layer, split over the tensor ranks, with fp32 gradients; "
          "what TransformerEngine 2.17 keeps for weights that do not change"}};
}

FrameworkTraits megatron_deepspeed() {
  return {.framework = Framework::kMegatronDeepspeed,
          .stands_for = "Megatron-DeepSpeed (2022), DeepSpeed's pipeline and ZeRO stage 1",
          .stage_outputs = StageOutputs::kPartitioned,
          .loss_buffers = LossBuffers::kTwo,
          .gradient_type = GradientType::kParameter,
          .gradient_keeping = GradientKeeping::kDeepspeed,
          .shared_step_counter = true,
          .overlapped_sends = false,
          .partitioned_sends = true,
          .megatron_fusions = true,
          .parallel_residual = true,
          .divides_saved_inputs = true,
          .unfused_attention = true,
          .vocabulary_multiple = 128,
          .notes = {
              "fp16: gradients are kept in the parameters' .grad and summed in fp16; they are "
              "flattened and all-reduced, up to 500,000,000 elements at once, and each rank casts "
              "its part of them for the step (DeepSpeed v0.5.10, stage_1_and_2.py)",
              "bf16: after each backward the gradients are cast one by one and added to flat fp32 "
              "gradients, and both are kept; the flat gradients are all-reduced as one bf16 copy "
              "(DeepSpeed's branch bf16-updates of 2022-02-28, bf16_optimizer.py and engine.py)",
              "ZeRO's fp32 state is one flat tensor for each rank, made before the first step",
              "between stages each tensor rank keeps its part of the activations and sends it, and "
              "the receivers gather the parts (pipe/engine.py, PartitionedTensor); sending counts "
              "only as time",
              "logits are cast to fp32 before the loss, which copies them (gpt_model.py)",
              "distribute_saved_activations is DeepSpeed's partition_activations; its fill of the "
              "gathered input with zeros does not count as time (checkpointing.py)",
              "with parallel_residual: GPT-NeoX's layer (gpt_j_residual); bias and dropout come "
              "before the sum over the tensor ranks, so that sequence parallelism does not divide "
              "the dropout masks (megatron/model/transformer.py)"}};
}

FrameworkTraits nanotron() {
  return {.framework = Framework::kNanotron,
          .stands_for = "nanotron (July 2024), tensor parallel mode REDUCE_SCATTER",
          .fused_rotary = true,
          .batch_first_attention = true,
          .query_keeps_packed = true,
          .keeps_gathered_input = true,
          .stage_outputs = StageOutputs::kKept,
          .loss_buffers = LossBuffers::kTwo,
          .gradient_keeping = GradientKeeping::kUntilSummed,
          .reducer_buckets = true,
          .overlapped_sends = false,
          .synchronized_sends = true,  // _send_meta and _recv_meta of p2p.py read the GPU's tensors
          .stages_by_cost = true,
          .asynchronous_linear = true,
          .notes = {"as of commit f1adf520",
                    "attention copies query, key and value into one tensor, rotates the query "
                    "there and copies key and value again (models/llama.py)",
                    "SwiGLU from PyTorch's operators: input, silu(gate) and output are kept",
                    "column-parallel layers keep the gathered input; with "
                    "tp_recompute_allgather they keep their part of it, and gather it into a "
                    "buffer that all layers share",
                    "with tp_linear_async_communication a rank multiplies its own part of the "
                    "sequence while the other parts are gathered, forward in column-parallel and "
                    "backward in row-parallel layers (parallel/tensor_parallel/functional.py)",
                    "logits are cast to fp32 before the loss, which makes a second buffer",
                    "its kernels that read views, concatenate or normalise reach only a small part "
                    "of the memory bandwidth (data/kernels.json); of the host's work only "
                    "the calls of operators count, not the data loader, and the six small kernels "
                    "that find each layer's sequence lengths do not count either",
                    "a stage waits for what it sends (send_tensors in p2p.py)",
                    "bf16 gradients live until the end of a micro-batch's backward, when they are "
                    "added to a flat fp32 buffer (optim/gradient_accumulator.py)",
                    "DistributedDataParallel only without ZeRO (make_ddp in trainer.py)"}};
}

FrameworkTraits torchtitan() {
  return {
      .framework = Framework::kTorchtitan,
      .stands_for = "TorchTitan (tensor, pipeline, replicated or fully sharded data parallel)",
      .complex_rotary = true,  // apply_rotary_emb in models/llama3/model/model.py
      .separate_products = true,
      .whole_embedding_gradient = true,
      .norms_last = true,              // TransformerBlock in models/llama3/model/model.py
      .functional_collectives = true,  // apply_tp in models/llama3/infra/parallelize.py
      .cudnn_attention_first = true,   // ScaledDotProductAttentionWrapper in models/attention.py
      .clips_on_device = true,         // torch.nn.utils.clip_grad_norm_
      .selective_by_operator = true,
      .stage_outputs = StageOutputs::kKept,
      .loss_buffers = LossBuffers::kTorchParallel,
      .gradient_type = GradientType::kParameter,
      .gradient_keeping = GradientKeeping::kUntilZeroed,
      .master_weights = false,
      .reducer_buckets = true,
      .fully_sharded = true,
      .experts = true,
      .stacked_experts = true,
      .overlapped_sends = false,   // _step_microbatches() of Schedule1F1B waits for them
      .synchronized_steps = true,  // dist_sum() of the tokens in train_step of torchtitan/train.py
      .waits_for_tokens = true,    // train_step()
      .torch_pipeline = true,
      .notes = {
          "ZeRO stages 2 and 3 are FSDP2 with fp32 parameters, computation in the plan's dtype "
          "and reduction in fp32; each layer is a unit, and so are embedding and head",
          "attention is cuDNN's kernel, and flash where that is not for the heads or not "
          "deterministic (models/attention.py of v0.2.2); versions of 2024: --attention flash",
          "pipelines are torch.distributed.pipelining's (stage.py and schedules.py of torch 2.11): "
          "layers are dealt as generate_llm_fqn_per_model_part does, a stage has two buffers for "
          "each micro-batch that stay, and the tokens and labels of the whole batch, and 1F1B "
          "holds the last output or logits until the next ones are there; under FSDP2 units stay "
          "gathered and gradients whole, in fp32, until the last micro-batch, and a step with a "
          "pipeline has one batch of micro-batches (training.local_batch_size)",
          "embedding and [norm, output] are units of their own also where they have one weight "
          "(tie_embeddings), which both gather and reduce",
          "without FSDP all parameters, gradients and AdamW's state have the plan's dtype "
          "(TorchTitan's --training.dtype); autocast over fp32 parameters has no key",
          "the experts of a layer are three tensors, which belong to the layer's unit, and three "
          "grouped products (torch._grouped_mm), whose groups are padded to multiples of eight "
          "rows (MoE in models/moe/moe.py of v0.2.2); with expert parallelism they are a unit of "
          "their "
          "own, over the ranks that have the same experts (apply_fsdp in "
          "models/llama4/infra/parallelize.py); but for Qwen3, they are balanced once in a step by "
          "the sum over all ranks of how many tokens each expert had; that of replicas counts as a "
          "second sum",
          "SwiGLU, rotary positions (of complex numbers in fp32) and cross-entropy from PyTorch's "
          "operators, fused RMSNorm (TorchTitan's own, of operators, until March 2025: "
          "--no-rms-norm-fusion)",
          "over tensor ranks the cross-entropy is DTensor's, with up to four fp32 buffers of a "
          "rank's logits (torch/distributed/tensor/parallel/loss.py), and each rank makes the "
          "embedding's gradient of the whole vocabulary, of which it copies its rows "
          "(embedding_dense_backward_strategy in torch/distributed/tensor/_ops/_embedding_ops.py)",
          "selective recompute by operator: a layer keeps its input and the outputs of attention "
          "kernels, of reduce-scatters and of every second matrix product without a bias, "
          "beginning with the first, and recomputes everything else (apply_ac and "
          "_op_sac_save_list of v0.2.2; main of August 2026 also keeps products with a bias and "
          "those of unfused attention)",
          "selective_ac_option is op by default, as in TorchTitan's training configurations "
          "(llama3_8b.toml); v0.2.2 without this option recomputes every second layer",
          "without FSDP the gradients are autograd's own and live from the first backward until "
          "zero_grad() of the next step; with several data ranks DistributedDataParallel's buckets "
          "are added (apply_ddp of v0.2.2): their reduction counts once for each step, although "
          "TorchTitan reduces after each micro-batch, and the first buckets, which live for a "
          "short time when new ones are made after the first backward, are not counted"}};
}

/// The models of Hugging Face transformers (models/llama/modeling_llama.py of 4.57), whoever trains
/// them.
FrameworkTraits transformers_models() {
  return {.rotary_made = RotaryMade::kInEachForward,
          .separate_products = true,
          .autograd_products = true,
          .norm_of_operators = true,
          .gelu_new_of_operators = true,
          .norms_last = true,
          .torch_attention = true,
          .returns_logits = true,
          .reads_mask = true,    // _ignore_causal_mask_sdpa in masking_utils.py
          .reads_losses = true,  // logging_nan_inf_filter in _inner_training_loop of trainer.py
          .decay_groups = true,  // create_optimizer in trainer.py
          .data_parallel_only = true,
          .stage_outputs = StageOutputs::kKept,
          .loss_buffers = LossBuffers::kTorch,
          .gradient_type = GradientType::kParameter,
          .parallel_residual = true,
          .layer_variants = true,
          .window_masks = true};
}

FrameworkTraits transformers() {
  FrameworkTraits traits = transformers_models();
  traits.framework = Framework::kTransformers;
  traits.stands_for =
      "Hugging Face transformers 4.57 (Llama, Mistral, Qwen) with its Trainer and accelerate 1.12";
  traits.mixed_precision = true;
  traits.adapters = Adapters::kPeft;
  traits.gradient_keeping = GradientKeeping::kUntilZeroed;
  traits.master_weights = false;
  traits.clips_on_device = true;  // torch.nn.utils.clip_grad_norm_
  traits.reducer_buckets = true;
  // kDefaultFirstBucketBytes in torch/csrc/distributed/c10d/reducer.hpp, bucket_cap_mb of
  // DistributedDataParallel
  traits.first_bucket_bytes = 1024 * 1024;
  traits.bucket_bytes = 25 * 1024 * 1024;
  traits.finds_unused_parameters = true;  // _wrap_model in trainer.py
  traits.fully_sharded = true;
  traits.root_unit = true;          // fsdp2_prepare_model in accelerate/utils/fsdp_utils.py
  traits.checkpoints_units = true;  // GradientCheckpointingLayer in modeling_layers.py
  // set_mixed_precision in accelerate/utils/dataclasses.py, no_sync in accelerate/accelerator.py
  traits.reduces_in_compute_type = true;
  traits.accumulates_whole_gradients = true;
  traits.notes = {
      "layers as in models/llama/modeling_llama.py: RMSNorm and rotary positions from PyTorch's "
      "operators, separate products for query, key, value, gate and up, attention by "
      "scaled_dot_product_attention without a mask",
      "mixed_precision (--bf16 of the Trainer): fp32 parameters under autocast, whose copies of "
      "weights in 16 bits last until the forward is over or, where the backward needs them, "
      "until it has read them; --no-mixed-precision: the model was loaded in the plan's dtype",
      "the loss is PyTorch's cross entropy of logits in fp32; the model also returns the logits, "
      "which accelerate casts to fp32",
      "DistributedDataParallel has PyTorch's buckets beside the gradients, and sends rank 0's "
      "parameters in flat copies when it is made; without recompute the Trainer has it look for "
      "unused parameters, for which it copies loss and logits",
      "lora_rank: adapters of peft 0.18 in fp32 beside weights in the plan's dtype (under FSDP2 "
      "all "
      "parts are in fp32); with recompute the embedding's output asks for a gradient "
      "(enable_input_require_grads)",
      "ZeRO stages 2 and 3 are accelerate's FSDP2 (fsdp_version 2, transformer based wrap) "
      "without and with reshard_after_forward: a unit for each layer and one for the rest; its "
      "policy computes and reduces in the plan's dtype; with several micro-batches gradients stay "
      "whole until the last one, and are reduced once; FSDP of version 1 is not supported",
      "recompute full is gradient_checkpointing, whose checkpoints are reentrant",
      "AdamW (adamw_torch_fused) over parameters in their own type, in two groups, of which one "
      "does not decay; gradients are clipped (max_grad_norm), and zeroed after each step",
      "in each micro-batch the host waits for its GPU three times: it reads whether the mask has "
      "only ones, and whether the loss is NaN or infinite (logging_nan_inf_filter)"};
  return traits;
}

FrameworkTraits internevo() {
  return {
      .framework = Framework::kInternevo,
      .stands_for = "InternEvo (July 2023), HybridZeroOptimizer over all data ranks",
      .gradient_type = GradientType::kParameter,
      .whole_parameters = true,
      .notes = {"as of its first commit, fa7337b (internlm/solver/optimizer/hybrid_zero_optim.py)",
                "ZeRO stage 1: in the order of descending size, each parameter goes as a whole to "
                "the data rank with the fewest elements; an owner has its parameters in one flat "
                "fp32 tensor and broadcasts them together after its step, without overlap",
                "data rank 0 stands for all ranks: if there are more ranks than parameters it owns "
                "the largest one, else all ranks own nearly equally much",
                "gradients are summed in the plan's dtype and all-reduced in buckets; not counted "
                "are its copy of each bucket, the dropping of gradients of parameters that other "
                "ranks own, and the reductions for norm and overflow",
                "layers, loss and pipeline as in plain"}};
}

FrameworkTraits deepspeed() {
  FrameworkTraits traits = transformers_models();
  traits.framework = Framework::kDeepspeed;
  traits.stands_for =
      "DeepSpeed's engine (0.18) with ZeRO stages 1 to 3 around a Transformers model";
  traits.deepspeed_engine = true;
  traits.copies_before_cast = true;
  traits.notes = {
      "stages 1 and 2: parameters in one flat tensor, of which each rank updates a partition; "
      "gradients are copied into buckets of reduce_bucket_size and all-reduced; a rank keeps "
      "those that reach into its partition, whole, in the parameters' type "
      "(runtime/zero/stage_1_and_2.py of v0.18.3)",
      "stage 3: a part of each parameter, as of a model made under zero.Init; modules are "
      "gathered, gathered ahead and released as DeepSpeed's coordinator does with the modules "
      "of transformers' Llama (runtime/zero/stage3.py, partitioned_param_coordinator.py)",
      "two parameter groups, as with an optimizer of the Trainer, each with flat tensors, a norm "
      "and an update of its own; --no-decay-groups: one, as with an optimizer that DeepSpeed's "
      "JSON names",
      "the norm of the gradients casts each to fp64; in fp16 they are also searched for "
      "infinities; all ranks sum one number for each of the two",
      "the host reads mask and loss of each micro-batch, and the norm after a step",
      "not counted: the broadcast of the parameters at the start",
      "layers and loss as in the framework transformers, of a model in 16 bits"};
  return traits;
}

FrameworkTraits plain() {
  return {.framework = Framework::kPlain,
          .stands_for = "PyTorch's operators under Megatron-LM's layout of gradients and optimizer",
          .fully_sharded = true,
          .optimizer_cpu_offload = true,
          .experts = true,
          .overlap_flags = true,
          .latent_attention = true,
          .multi_token_prediction = true,
          .parallel_residual = true,
          .layer_variants = true,
          .window_masks = true,
          .window_kernels = true,
          .softmax_offsets = true,
          .quick_geglu = true,
          .notes = {"SwiGLU, rotary positions and cross-entropy from PyTorch's operators; over "
                    "tensor ranks Megatron-LM's cross-entropy",
                    "fp32 gradient buffer and fp32 master weights; ZeRO stages 2 and 3 are FSDP2"}};
}

}  // namespace

const std::vector<FrameworkTraits>& frameworks() {
  static const std::vector<FrameworkTraits> all = {megatron_lm(),
                                                   megatron_deepspeed(),
                                                   nanotron(),
                                                   torchtitan(),
                                                   transformers(),
                                                   internevo(),
                                                   deepspeed(),
                                                   plain()};
  return all;
}

const FrameworkTraits& traits_of(Framework framework) {
  const auto& all = frameworks();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const FrameworkTraits& t) { return t.framework == framework; });
  if (found == all.end()) throw std::logic_error("a framework has no traits");
  return *found;
}

bool recomputes(const Plan& plan, RecomputeModule module) {
  const TrainingConfig& t = plan.training;
  if (t.recompute != Recompute::kSelective || traits_of(t.framework).selective_by_operator) {
    return false;
  }
  const std::vector<std::string>& named = t.recompute_modules;
  if (named.empty()) return module == RecomputeModule::kCoreAttention;
  return std::find(named.begin(), named.end(), to_string(module)) != named.end();
}

int64_t recomputed_layers(const TrainingConfig& training, int64_t of_chunk) {
  if (training.recompute != Recompute::kFull) return 0;
  const bool is_block = training.recompute_method == RecomputeMethod::kBlock;
  return is_block ? std::min(training.recompute_num_layers, of_chunk) : of_chunk;
}

namespace {

bool runs_whole_again(const Plan& plan, const LayerNumber& layer) {
  const TrainingConfig& t = plan.training;
  const bool predicts = layer.of_model >= plan.model.num_layers;
  if (predicts) return t.recompute_method == RecomputeMethod::kUniform;
  return layer.of_chunk < recomputed_layers(t, layer.of_chunk + 1);
}

}  // namespace

Recomputed recomputed(const Plan& plan, const LayerNumber& layer) {
  const TrainingConfig& t = plan.training;
  if (t.recompute == Recompute::kNone) return Recomputed::kNothing;
  if (t.recompute == Recompute::kFull) {
    return runs_whole_again(plan, layer) ? Recomputed::kLayer : Recomputed::kNothing;
  }
  if (!traits_of(t.framework).selective_by_operator) return Recomputed::kModules;
  if (t.selective_ac_option == kSelectiveByOperator) return Recomputed::kUnlistedOperators;
  const int64_t every = std::stoll(t.selective_ac_option);
  const bool is_one = every == 0 || (layer.of_rank + 1) % every == 0;
  return is_one ? Recomputed::kLayer : Recomputed::kNothing;
}

int64_t layers_of_checkpoint(const TrainingConfig& training) {
  const bool are_joined = training.recompute == Recompute::kFull &&
                          training.recompute_method == RecomputeMethod::kUniform;
  return are_joined ? training.recompute_num_layers : 1;
}

}  // namespace estimator
