// The options of training: batch, types, optimizer, recompute, kernels; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/expert_options.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Sizes of a batch or of the model.
inline constexpr Range kSize = {1, 1e9};
/// Tokens of a sample. The longest published context has 1e8.
inline constexpr Range kSequence = {1, 1 << 27};

template <class Visitor>
void visit_batch(Visitor& visit, TrainingConfig& training) {
  visit("micro_batch_size",
        training.micro_batch_size,
        {"samples of one micro-batch on one data rank", kSize, {{"--micro-batch-size,--mbs"}}});
  visit("global_batch_size",
        training.global_batch_size,
        {"samples of one step; auto: one micro-batch for each data rank (search needs a number)",
         kSize,
         {{"--global-batch-size,--gbs"}}});
  visit("gradient_accumulation_steps",
        training.gradient_accumulation_steps,
        {"micro-batches of a step on each data rank, another way to say the global batch; auto: "
         "follows from the global batch",
         kSize,
         {ours({"--gradient-accumulation-steps"})}});
  visit("sequence_length",
        training.sequence_length,
        {"tokens of a sample; auto: the model's maximum, at most 8192",
         kSequence,
         {{"--seq-length,--seq"}}});
}

template <class Visitor>
void visit_types(Visitor& visit, TrainingConfig& training) {
  visit(
      "dtype",
      training.dtype,
      {"type of parameters and activations",
       {{"--bf16", "\"bf16\"", "parameters in bfloat16"},
        {"--fp16", "\"fp16\"", "parameters in half precision"},
        ours({"--fp32", "\"fp32\"", "parameters in single precision"}),
        ours(
            {"--dtype", "", "", "bfloat16=bf16,float16=fp16,float32=fp32,half=fp16,float=fp32"})}});
  visit(
      "mixed_precision",
      training.mixed_precision,
      {"transformers: parameters are in fp32, and computation in 16 bits: under autocast, or by "
       "FSDP2's policy (accelerate's mixed_precision); off: all is in the type of the model; "
       "auto: on there in 16 bits",
       {ours({"--no-mixed-precision", "false", "parameters are in the type of the computation"})}});
}

template <class Visitor>
void visit_optimizer(Visitor& visit, TrainingConfig& training) {
  visit(
      "optimizer",
      training.optimizer,
      {"the optimizer; sgd has momentum; muon (Megatron-LM) updates matrices, and AdamW the other "
       "parameters",
       {{"--optimizer", "", "", "adam=adamw"}}});
  visit("decay_groups",
        training.decay_groups,
        {"transformers, deepspeed: the optimizer has a group of parameters that decay and one of "
         "those that do not (norms, biases), as the Trainer makes it; off: one group, as DeepSpeed "
         "makes it for the optimizer of its JSON; auto: on there",
         {ours({"--no-decay-groups", "false", "the optimizer has one group of parameters"})}});
}

template <class Visitor>
void visit_muon(Visitor& visit, TrainingConfig& training) {
  visit("muon_num_ns_steps",
        training.muon_num_ns_steps,
        {"muon: Newton-Schulz steps", Range{1, 100}, {{"--muon-num-ns-steps"}}});
  visit("muon_split_qkv",
        training.muon_split_qkv,
        {"muon: queries, keys and values are orthogonalised one by one",
         {{"--muon-no-split-qkv", "false", "muon: queries, keys and values are one matrix"}}});
  visit("muon_nesterov",
        training.muon_nesterov,
        {"muon: Nesterov's momentum", {{"--muon-nesterov", "true"}}});
  visit("muon_tp_mode",
        training.muon_tp_mode,
        {"muon: how tensor ranks orthogonalise a matrix that they split: each gathers it "
         "(duplicated), or each its own part (blockwise); distributed is not supported",
         {{"--muon-tp-mode"}}});
}

template <class Visitor>
void visit_offload(Visitor& visit, TrainingConfig& training) {
  visit("optimizer_cpu_offload",
        training.optimizer_cpu_offload,
        {"the host keeps master weights and moments, and updates them (Megatron-LM)",
         {{"--optimizer-cpu-offload", "true"}}});
  visit("optimizer_offload_fraction",
        training.optimizer_offload_fraction,
        {"fraction of the parameters that the host updates, with --optimizer-cpu-offload",
         {{"--optimizer-offload-fraction"}}});
  visit("use_precision_aware_optimizer",
        training.use_precision_aware_optimizer,
        {"accepted with --optimizer-cpu-offload, which turns it on, and where the recipe of 8-bit "
         "products is not delayed; else not supported",
         {{"--use-precision-aware-optimizer", "true"}}});
  visit("exp_avg_dtype",
        training.exp_avg_dtype,
        {"megatron-lm: type of the means of gradients that AdamW keeps beside fp32 master weights, "
         "fp32 or bf16",
         {{"--exp-avg-dtype"}}});
  visit("exp_avg_sq_dtype",
        training.exp_avg_sq_dtype,
        {"the same of the means of their squares; both have one type", {{"--exp-avg-sq-dtype"}}});
  visit("overlap_cpu_optimizer_d2h_h2d",
        training.overlap_cpu_optimizer_d2h_h2d,
        {"overlap the copies of gradients to the host, and of parameters back, with the host's "
         "updates",
         {{"--overlap-cpu-optimizer-d2h-h2d", "true"}}});
  visit("pin_cpu_grads",
        training.pin_cpu_grads,
        {"keep gradients in page-locked host memory",
         {{"--no-pin-cpu-grads", "false", "gradients on the host are not page-locked"}}});
  visit("pin_cpu_params",
        training.pin_cpu_params,
        {"keep master weights in page-locked host memory",
         {{"--no-pin-cpu-params", "false", "master weights on the host are not page-locked"}}});
}

template <class Visitor>
void visit_adapters(Visitor& visit, TrainingConfig& training) {
  visit(
      "lora_rank",
      training.lora_rank,
      {"LoRA adapters of this rank are trained beside weights that do not change, as peft does it "
       "(transformers) or Megatron-Bridge (megatron-lm); 0: all parameters are trained",
       Range{0, 65536},
       {ours({"--lora-rank,--lora-r"})}});
  visit("lora_dropout",
        training.lora_dropout,
        {"dropout of the adapters' inputs", Range{0, 0.999}, {ours({"--lora-dropout"})}});
  visit("lora_target_modules",
        training.lora_target_modules,
        {"the linear layers that have an adapter, or all-linear; transformers: q_proj, k_proj, "
         "v_proj, o_proj, gate_proj, up_proj, down_proj, if nothing is given q_proj and v_proj, as "
         "in peft; megatron-lm: linear_qkv, linear_proj, linear_fc1, linear_fc2, if nothing is "
         "given all of them",
         {ours({"--lora-target-modules"})}});
  visit("lora_a2a_experimental",
        training.lora_a2a_experimental,
        {"megatron-lm, with sequence parallelism: an adapter beside a row-parallel layer turns its "
         "columns into its part of the sequence by one all-to-all, instead of gathering them",
         {ours({"--lora-a2a-experimental", "true"})}});
}

template <class Visitor>
void visit_recompute(Visitor& visit, TrainingConfig& training) {
  visit("recompute",
        training.recompute,
        {"activation recomputation: selective recomputes core attention (torchtitan: see "
         "--selective-ac-option), full recomputes whole layers",
         {{"--recompute-granularity"},
          ours({"--recompute", "", "the short name of --recompute-granularity"}),
          {"--recompute-activations", "\"selective\"", "the same as selective"}}});
  visit("recompute_method",
        training.recompute_method,
        {"megatron-lm, with full recompute: uniform recomputes all layers, as many as one as "
         "--recompute-num-layers says; block recomputes that many layers of each chunk of a stage, "
         "and no others",
         {{"--recompute-method"}}});
  visit("recompute_num_layers",
        training.recompute_num_layers,
        {"with full recompute: the layers that --recompute-method means",
         kSize,
         {{"--recompute-num-layers"}}});
  visit("recompute_modules",
        training.recompute_modules,
        {"megatron-lm: what selective recompute runs again: core_attn (if nothing is given), mlp, "
         "moe, shared_experts, layernorm, moe_act, mla_up_proj",
         {{"--recompute-modules"}}});
  visit("distribute_saved_activations",
        training.distribute_saved_activations,
        {"with full recompute: each tensor rank keeps its part of a layer's input, and gathers "
         "the parts before it recomputes the layer",
         {{"--distribute-saved-activations", "true"}}});
  visit("selective_ac_option",
        training.selective_ac_option,
        {"torchtitan: selective recomputes by operator (op), or every Nth layer as a whole (N)",
         {ours({"--selective-ac-option"})}});
}

/// The framework, its version, and its attention kernel.
template <class Visitor>
void visit_framework(Visitor& visit, TrainingConfig& training) {
  visit("attention",
        training.attention,
        {"attention kernel: flash (flash-attn), flash1 (its version 1), fused (cuDNN) or unfused; "
         "auto: what the framework uses on this GPU",
         {{"--attention-backend", "", "", "local=unfused"},
          ours({"--attention"}),
          {"--use-flash-attn", "\"flash\"", "the same as flash"}}});
  visit(
      "framework",
      training.framework,
      Option{
          "framework whose layers, buffers and kernels are simulated (`onerank list frameworks`); "
          "auto: transformers for adapters, torchtitan for ZeRO stages 2 and 3, which are FSDP2, "
          "else "
          "megatron-lm",
          {ours({"--framework",
                 "",
                 "",
                 "megatron=megatron-lm,mcore=megatron-lm,titan=torchtitan,hf=transformers"}),
           ours({"--dialect", "", "the older name of --framework"})}}
          .formerly("dialect"));
  visit("transformer_impl",
        training.transformer_impl,
        {"megatron-lm: TransformerEngine's layers, or Megatron-LM's own (local)",
         {{"--transformer-impl"}}});
  visit(
      "megatron_core",
      training.megatron_core,
      {"megatron-lm: version of its core, 0.13.1; empty: the newest that is known, 0.14 and later",
       {ours({"--megatron-core"})}});
}

template <class Visitor>
void visit_quantization(Visitor& visit, TrainingConfig& training) {
  visit(
      "fp8_format",
      training.fp8_format,
      {"megatron-lm: TransformerEngine's linear layers multiply in 8 bits: all in e4m3, or output "
       "gradients in e5m2 (hybrid)",
       {{"--fp8-format"}}});
  visit("fp8_recipe",
        training.fp8_recipe,
        {"of 8 bits: a tensor's scale comes from earlier iterations (delayed), or from its own "
         "largest element (tensorwise); or 32 elements have one (mxfp8, on Blackwell)",
         {{"--fp8-recipe"}}});
  visit("tp_only_amax_red",
        training.tp_only_amax_red,
        {"of 8 bits with scales from earlier iterations: only tensor and context ranks agree on "
         "them, not all ranks of a stage",
         {{"--tp-only-amax-red", "true"}}});
  visit("fp8_param_gather",
        training.fp8_param_gather,
        {"of 8 bits: the weights of these layers are in 8 bits alone, and are gathered so after a "
         "step; the distributed optimizer keeps them in fp32",
         {{"--fp8-param-gather", "true"}}});
  visit("fp8_dot_product_attention",
        training.fp8_dot_product_attention,
        {"of 8 bits: cuDNN's attention multiplies in 8 bits, too; mxfp8, on Blackwell",
         {ours({"--fp8-dot-product-attention", "true"})}});
  visit("fp8_output_proj",
        training.fp8_output_proj,
        {"of 8 bits: the output layer multiplies in 8 bits, too; mxfp8",
         {{"--fp8-output-proj", "true"}}});
  visit("activation_func_fp8_input_store",
        training.activation_func_fp8_input_store,
        {"megatron-lm: the fused SwiGLU keeps its input in 8 bits (e4m3) for the backward",
         {ours({"--activation-func-fp8-input-store", "true"})}});
  visit("fp4_format",
        training.fp4_format,
        {"megatron-lm: these layers multiply in 4 bits (e2m1), on Blackwell", {{"--fp4-format"}}});
  visit("fp4_recipe",
        training.fp4_recipe,
        {"of 4 bits: 16 elements have a scale in 8 bits, and a tensor one in fp32 (nvfp4)",
         {{"--fp4-recipe"}}});
  visit("fp4_param_gather",
        training.fp4_param_gather,
        {"of 4 bits: the weights of these layers are in 4 bits alone, as fp8_param_gather keeps "
         "them in 8",
         {{"--fp4-param-gather", "true"}}});
}

/// What is one kernel, and what is several.
template <class Visitor>
void visit_fusions(Visitor& visit, TrainingConfig& training) {
  visit("cross_entropy_fusion",
        training.cross_entropy_fusion,
        {"megatron-lm: fused cross-entropy; native is Megatron-LM's, te is TransformerEngine's",
         {{"--cross-entropy-loss-fusion",
           "\"native\"",
           "fused cross-entropy; --cross-entropy-fusion-impl chooses which one, by default native",
           "",
           true},
          {"--cross-entropy-fusion-impl"}}});
  visit("gradient_accumulation_fusion",
        training.gradient_accumulation_fusion,
        {"megatron-lm: products add weight gradients straight into the gradient buffer",
         {{"--no-gradient-accumulation-fusion", "false", "weight gradients go through autograd"}}});
  visit(
      "grad_reduce_in_bf16",
      training.grad_reduce_in_bf16,
      {"megatron-lm: gradients are summed over micro-batches and reduced in the plan's 16-bit type "
       "(bf16, or fp16 as Megatron-LM does with --fp16 alone), not in fp32",
       {{"--grad-reduce-in-bf16", "true"}}});
  visit("bias_gelu_fusion",
        training.bias_gelu_fusion,
        {"megatron-lm: one kernel for bias and GELU or GEGLU",
         {{"--no-bias-gelu-fusion", "false", "bias and GELU are kernels of their own"}}});
  visit("bias_swiglu_fusion",
        training.bias_swiglu_fusion,
        {"megatron-lm: one kernel for bias and SwiGLU",
         {{"--no-bias-swiglu-fusion", "false", "bias and SwiGLU are kernels of their own"}}});
  visit("bias_dropout_fusion",
        training.bias_dropout_fusion,
        {"megatron-lm: one kernel for bias, dropout and residual",
         {{"--no-bias-dropout-fusion",
           "false",
           "bias, dropout and residual are kernels of their own"}}});
  visit("masked_softmax_fusion",
        training.masked_softmax_fusion,
        {"megatron-lm: one kernel for scale, mask and softmax, in its own layers (local)",
         {{"--no-masked-softmax-fusion", "false", "the softmax is PyTorch's"}}});
  visit("attention_softmax_in_fp32",
        training.attention_softmax_in_fp32,
        {"megatron-lm, local layers: where the softmax is not one kernel, it reads and keeps fp32",
         {{"--attention-softmax-in-fp32",
           "true",
           "the softmax is in fp32, which is the default here"},
          ours({"--no-attention-softmax-in-fp32",
                "false",
                "the softmax is in the type of the scores"})}});
  visit("rope_fusion",
        training.rope_fusion,
        {"megatron-lm: one kernel for rotary positions",
         {{"--no-rope-fusion", "false", "rotary positions are PyTorch's operators"}}});
  visit("rms_norm_fusion",
        training.rms_norm_fusion,
        {"torchtitan and plain: RMSNorm is one kernel (transformers: never)",
         {ours({"--no-rms-norm-fusion",
                "false",
                "RMSNorm is several kernels, as in TorchTitan until March 2025"})}});
}

template <class Visitor>
void visit_determinism_and_checks(Visitor& visit, TrainingConfig& training) {
  visit("attention_mask_in_dataloader",
        training.attention_mask_in_dataloader,
        {"megatron-lm: each micro-batch carries its attention mask [b, 1, s, s]; auto: on there",
         {ours({"--create-attention-mask-in-dataloader", "true", "micro-batches carry their mask"}),
          {"--no-create-attention-mask-in-dataloader", "false", "micro-batches carry no mask"}}});
  visit("deterministic_mode",
        training.deterministic_mode,
        {"deterministic algorithms of PyTorch and of attention's backward; megatron-lm: NCCL uses "
         "only rings, too",
         {{"--deterministic-mode", "true"}}});
  visit("fill_uninitialized_memory",
        training.fill_uninitialized_memory,
        {"with --deterministic-mode: PyTorch fills tensors that at::empty makes; auto: off in "
         "megatron-lm, else on",
         {ours({"--fill-uninitialized-memory", "true"})}});
  visit("check_for_nan_in_loss_and_grad",
        training.check_for_nan_in_loss_and_grad,
        {"megatron-lm: check each loss and each gradient bucket for NaN, for which the host waits; "
         "auto: on there, except in fp16",
         {{"--no-check-for-nan-in-loss-and-grad",
           "false",
           "do not check losses and gradients for NaN"}}});
  visit("empty_unused_memory_level",
        training.empty_unused_memory_level,
        {"megatron-lm: give free segments back to the GPU in each iteration, with 1 before the "
         "optimizer's step, with 2 after it, too; 0: never",
         Range{0, 2},
         {{"--empty-unused-memory-level"}}});
}

template <class Visitor>
void visit_graphs(Visitor& visit, TrainingConfig& training) {
  visit("cuda_graph_impl",
        training.cuda_graph_impl,
        {"megatron-lm: CUDA graphs: transformer_engine captures modules of each layer, "
         "full_iteration the forwards and backwards of a step; local is supported as an older name "
         "of full_iteration alone",
         {{"--cuda-graph-impl"},
          {"--enable-cuda-graph", "\"local\"", "the older name of --cuda-graph-impl local"},
          {"--external-cuda-graph",
           "\"transformer_engine\"",
           "the older name of --cuda-graph-impl transformer_engine"}}});
  visit("cuda_graph_modules",
        training.cuda_graph_modules,
        {"what the graphs of layers capture: attn, mlp (of layers without experts), moe_router, "
         "moe_preprocess, moe; all of a layer if nothing is given; full_iteration beside local",
         {{"--cuda-graph-modules"}, {"--cuda-graph-scope"}}});
}

/// Vocabulary padding, length of the training, and seed.
template <class Visitor>
void visit_length(Visitor& visit, TrainingConfig& training) {
  visit("make_vocab_size_divisible_by",
        training.make_vocab_size_divisible_by,
        {"pad the vocabulary to a multiple of this x tensor; 1: off; auto: 128 for megatron-lm and "
         "megatron-deepspeed, else 1",
         kSize,
         {{"--make-vocab-size-divisible-by"}}});
  visit("steps",
        training.steps,
        Option{"steps of the whole training", kCount, {{"--train-iters"}}}.of_the_cluster());
  visit("tokens",
        training.tokens,
        Option{"tokens of the whole training; chinchilla: 20 for each parameter",
               kCount,
               {ours({"--train-tokens"})}}
            .of_the_cluster());
  visit("seed", training.seed, {"seed of the random weights, data and dropout", {{"--seed"}}});
}

template <class Visitor>
void visit_fields(Visitor& visit, TrainingConfig& training) {
  visit_batch(visit, training);
  visit_types(visit, training);
  visit_optimizer(visit, training);
  visit_muon(visit, training);
  visit_offload(visit, training);
  visit_adapters(visit, training);
  visit_recompute(visit, training);
  visit_framework(visit, training);
  visit_quantization(visit, training);
  visit_fusions(visit, training);
  visit_determinism_and_checks(visit, training);
  visit_graphs(visit, training);
  visit_dispatch(visit, training);
  visit_fused_experts(visit, training);
  visit_length(visit, training);
}

}  // namespace estimator
