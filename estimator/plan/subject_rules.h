// The rules of a plan, by subject: each has a source of its own. They need a plan whose ranges are
// checked and whose defaults are filled in.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Context parallelism: what TransformerEngine's attention requires when ranks split the sequence.
void check_context(Rules& rules);

/// DeepSpeed's engine: what it is built for here. Other frameworks must not set its keys.
void check_deepspeed(Rules& rules);

/// Deterministic training: options that Megatron-LM refuses together with it.
void check_determinism(Rules& rules);

/// Products in 8 bits: what TransformerEngine and the GPU require.
void check_eight_bits(Rules& rules);

/// What mixtures of experts require. A dense model must not set their keys.
void check_experts(Rules& rules);

void check_latent_attention(Rules& rules);

/// Layers with attention and MLP in parallel, layers of multi-token prediction, and nanotron's ways
/// to gather inputs of linear layers.
void check_layers(Rules& rules);

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

/// What transformers' Trainer with accelerate has, of the keys of other frameworks.
void check_trainer(Rules& rules);

}  // namespace estimator
