// The rules of a plan, by subject: each has a source of its own. They need a plan whose ranges are
// checked and whose defaults are filled in.
#pragma once

#include "estimator/resolve/rule_list.h"

namespace estimator {

/// Adapters (LoRA): what peft under transformers' Trainer, and Megatron-Bridge, are built for here.
void check_adapters(Rules& rules);

/// What the allocator accepts of its settings.
void check_allocator(Rules& rules);

/// Micro-batches that divide the global batch, a batch in samples, and a sequence that the model
/// and its tensor ranks can have.
void check_batch_and_sequence(Rules& rules);

/// GPU, links and network (check_hardware()), the size of the world, and degrees that multiply to
/// it.
void check_cluster(Rules& rules);

/// Context parallelism: what TransformerEngine's attention requires when ranks split the sequence.
void check_context(Rules& rules);

/// DeepSpeed's engine: what it is built for here. Other frameworks must not set its keys.
void check_deepspeed(Rules& rules);

/// CUDA graphs: what Megatron-LM captures, and what it refuses to.
void check_cuda_graphs(Rules& rules);

/// Deterministic training: options that Megatron-LM refuses together with it.
void check_determinism(Rules& rules);

/// Products in 8 or 4 bits: what TransformerEngine and the GPU require.
void check_quantization(Rules& rules);

/// What cuBLAS accepts as the size of its workspace.
void check_cublas_workspace(Rules& rules);

/// What mixtures of experts require. A dense model must not set their keys.
void check_experts(Rules& rules);

/// Forwards that run together with backwards: what Megatron-LM requires, and what is built of it.
void check_expert_overlap(Rules& rules);

/// Experts in fused kernels, and their memory of a fixed size: what is built of it.
void check_fused_experts(Rules& rules);

/// The attention kernel that is chosen, if it is not unfused: what it requires of GPU, type and
/// heads.
void check_flash_attention(Rules& rules);

/// GPU, links and network of a cluster, without its size.
void check_hardware(Rules& rules);

/// Memory that must stay free: a number without a unit counts bytes, which nobody means.
void check_headroom(Rules& rules);

void check_latent_attention(Rules& rules);

/// Layers with attention and MLP in parallel, layers of multi-token prediction, and nanotron's ways
/// to gather inputs of linear layers.
void check_layers(Rules& rules);

/// Steps and tokens of the training, which may both be given if they say the same.
void check_length_of_training(Rules& rules);

/// Sizes of the model that nobody gave, and those that cannot be derived from others. The ranges of
/// single numbers stand in model_options.h. Needs nothing that is filled in.
void check_model_ranges(Rules& rules);

/// Keys that are arguments of Megatron-LM alone, in plans of other frameworks, where they mean
/// nothing.
void check_megatron_keys(Rules& rules);

/// RMSNorm of several kernels: only some frameworks use PyTorch's.
void check_norm_fusion(Rules& rules);

/// Muon, and instances of the distributed optimizer: what Megatron-LM requires.
void check_optimizer(Rules& rules);

/// Optimizer offload: what Megatron-LM's hybrid optimizer requires.
void check_optimizer_offload(Rules& rules);

/// How stages and virtual stages split layers and micro-batches.
void check_pipeline(Rules& rules);

/// Matrices and parameters of a model whose numbers are in range one by one: what counts of bytes
/// and elements can hold. Needs nothing that is filled in.
void check_model_size(Rules& rules);

/// What TorchTitan's selective recompute, by operator or by layer, requires.
void check_recompute(Rules& rules);

/// Pipeline schedules that cannot be run yet.
void check_schedule(Rules& rules);

/// ZeRO stages; and of FSDP2 what it is built for here.
void check_sharding(Rules& rules);

/// Heads, columns and vocabulary of the model, as tensor ranks split them.
void check_tensor_split(Rules& rules);

/// What transformers' Trainer with accelerate has, of the keys of other frameworks.
void check_trainer(Rules& rules);

/// Overlap of the tensor ranks' communication with products: TransformerEngine's user buffers.
void check_user_buffers(Rules& rules);

}  // namespace estimator
