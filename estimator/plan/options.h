// The options of a plan, one line for each. These lines define how plans are read and written,
// their schema, the flags of the command line with their help, the ranges, and which options change
// nothing in the run of a single rank (profile_match.cpp). The defaults are in the structs.
//
//     visit("tensor", parallelism.tensor, {"tensor parallel size", kDegree,
//     {{"--tensor-model-parallel-size,--tp"}}});
//
// A new option needs a member in its struct, a line here, and the code for what it does.
// option_table.h lists all flags.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Numbers of ranks along an axis, of machines, of layers.
inline constexpr Range kDegree = {1, 1e6};
/// Sizes of a batch or of the model.
inline constexpr Range kSize = {1, 1e9};
/// Tokens of a sample. The longest published context has 1e8.
inline constexpr Range kSequence = {1, 1 << 27};

template <class Visitor>
void visit_fields(Visitor& visit, ModelConfig& model) {
  visit("num_layers", model.num_layers, {"transformer layers", {{"--num-layers"}}});
  visit("hidden_size", model.hidden_size, {"width of the residual stream", {{"--hidden-size"}}});
  visit("ffn_hidden_size", model.ffn_hidden_size, {"width of the MLP", {{"--ffn-hidden-size"}}});
  visit("num_attention_heads",
        model.num_attention_heads,
        {"query heads", {{"--num-attention-heads"}}});
  visit("num_query_groups",
        model.num_query_groups,
        {"key/value heads (GQA, MQA)", {{"--num-query-groups"}}});
  visit("kv_channels", model.kv_channels, {"width of one head", {{"--kv-channels"}}});
  visit("vocab_size", model.vocab_size, {"tokens in the vocabulary, unpadded", {{"--vocab-size"}}});
  visit("max_position_embeddings",
        model.max_position_embeddings,
        {"longest sequence", {{"--max-position-embeddings"}}});
  visit("tie_embeddings",
        model.tie_embeddings,
        {"output layer shares the input embedding",
         {{"--untie-embeddings-and-output-weights", "false", "an output layer of its own"}}});
  visit("normalization", model.normalization, {"norm of the layers", {{"--normalization"}}});
  visit("norm_epsilon",
        model.norm_epsilon,
        {"epsilon that the norm adds to the variance", {{"--norm-epsilon"}}});
  visit("activation",
        model.activation,
        {"activation function of the MLP; swiglu and geglu are gated; gelu_new is gelu, of several "
         "operators in the frameworks transformers and deepspeed",
         {{"--swiglu", "\"swiglu\"", "a gated MLP with SiLU"},
          {"--squared-relu", "\"squared_relu\"", "the square of ReLU"}}});
  visit("position_embedding",
        model.position_embedding,
        {"position embedding", {{"--position-embedding-type"}}});
  visit("rotary_percent",
        model.rotary_percent,
        {"part of each head that has rotary positions", {{"--rotary-percent"}}});
  visit("rotary_base", model.rotary_base, {"base of the rotary angles", {{"--rotary-base"}}});
  visit("add_bias_linear",
        model.add_bias_linear,
        {"biases in all linear layers of the blocks",
         {{"--disable-bias-linear", "false", "no biases"}}});
  visit("add_qkv_bias",
        model.add_qkv_bias,
        {"biases only for query, key and value", {{"--add-qkv-bias", "true"}}});
  visit("parallel_residual",
        model.parallel_residual,
        {"attention and MLP of a layer read the same input, and one sum adds both to it (GPT-J, "
         "GPT-NeoX, Falcon)",
         {{"--parallel-residual", "true"}}});
  visit("tied_layernorm",
        model.tied_layernorm,
        {"with --parallel-residual: one norm before attention and MLP, not one for each",
         {{"--tied-layernorm", "true"}}});
  visit(
      "multi_latent_attention",
      model.multi_latent_attention,
      {"multi-latent attention (MLA, DeepSeek): keys, values and queries are computed from latents",
       {{"--multi-latent-attention", "true"}}});
  visit("q_lora_rank",
        model.q_lora_rank,
        {"MLA: width of the queries' latent; 0: none", {{"--q-lora-rank"}}});
  visit("kv_lora_rank",
        model.kv_lora_rank,
        {"MLA: width of the latent of keys and values", {{"--kv-lora-rank"}}});
  visit("qk_head_dim",
        model.qk_head_dim,
        {"MLA: width of a query's or key's head without positions", {{"--qk-head-dim"}}});
  visit("qk_pos_emb_head_dim",
        model.qk_pos_emb_head_dim,
        {"MLA: width of a head's part with rotary positions; all heads share the key of this part",
         {{"--qk-pos-emb-head-dim"}}});
  visit("v_head_dim", model.v_head_dim, {"MLA: width of a value's head", {{"--v-head-dim"}}});
  visit("qk_layernorm",
        model.qk_layernorm,
        {"norms of queries and keys in each head; MLA: of the latents",
         {{"--qk-layernorm", "true"}}});
  visit("hidden_dropout",
        model.hidden_dropout,
        {"dropout probability after attention, MLP and embedding", {{"--hidden-dropout"}}});
  visit("attention_dropout",
        model.attention_dropout,
        {"dropout probability of the attention weights", {{"--attention-dropout"}}});
  visit("num_experts",
        model.num_experts,
        {"experts of a layer; 0: a dense model", {{"--num-experts"}}});
  visit("moe_router_topk",
        model.moe_router_topk,
        {"experts that each token uses", {{"--moe-router-topk"}}});
  visit("moe_ffn_hidden_size",
        model.moe_ffn_hidden_size,
        {"width of one expert", {{"--moe-ffn-hidden-size"}}});
  visit("moe_shared_expert_intermediate_size",
        model.moe_shared_expert_intermediate_size,
        {"width of the shared experts together, which all tokens use; 0: none",
         {{"--moe-shared-expert-intermediate-size"}}});
  visit("moe_layer_freq",
        model.moe_layer_freq,
        {"layers with experts: 2 means every second layer; or 0 (dense) or 1 (experts) for each "
         "layer, \"([0]*3+[1]*58)\"",
         {{"--moe-layer-freq"}}});
  visit(
      "moe_router_score_function",
      model.moe_router_score_function,
      {"function that turns the router's logits into weights", {{"--moe-router-score-function"}}});
  visit("moe_router_pre_softmax",
        model.moe_router_pre_softmax,
        {"softmax over all experts before choosing, not over the chosen ones",
         {{"--moe-router-pre-softmax", "true"}}});
  visit("moe_router_num_groups",
        model.moe_router_num_groups,
        {"groups of experts; a token uses experts of only some groups; 0: no groups",
         {{"--moe-router-num-groups"}}});
  visit("moe_router_group_topk",
        model.moe_router_group_topk,
        {"groups whose experts a token may use", {{"--moe-router-group-topk"}}});
  visit("moe_router_topk_scaling_factor",
        model.moe_router_topk_scaling_factor,
        {"factor for the experts' weights; 0: no factor", {{"--moe-router-topk-scaling-factor"}}});
  visit("moe_apply_probs_on_input",
        model.moe_apply_probs_on_input,
        {"the experts' weights scale what goes into them, not what comes out",
         {{"--moe-apply-probs-on-input", "true"}}});
  visit("moe_router_load_balancing_type",
        model.moe_router_load_balancing_type,
        {"auxiliary loss that balances the experts: over a micro-batch, or over each sequence",
         {{"--moe-router-load-balancing-type"}}});
  visit("moe_aux_loss_coeff",
        model.moe_aux_loss_coeff,
        {"weight of the balancing loss; 0: there is none", {{"--moe-aux-loss-coeff"}}});
  visit(
      "mtp_num_layers",
      model.mtp_num_layers,
      {"layers of multi-token prediction (MTP, DeepSeek-V3) after the last one, each with a loss; "
       "0: none",
       {{"--mtp-num-layers"}}});
  visit("mtp_loss_scaling_factor",
        model.mtp_loss_scaling_factor,
        {"MTP: weight of the mean of its layers' losses", {{"--mtp-loss-scaling-factor"}}});
}

template <class Visitor>
void visit_fields(Visitor& visit, ClusterConfig& cluster) {
  visit("gpu", cluster.gpu, {"a GPU of `onerank list gpus`", {{"--gpu"}}});
  visit("nodes",
        cluster.nodes,
        {"machines; auto: world size / gpus_per_node", kDegree, {{"--nodes"}}});
  visit("gpus_per_node",
        cluster.gpus_per_node,
        {"GPUs of one machine; auto: the usual ones of the GPU (8, GB200 4, GH200 1), or the world "
         "if "
         "smaller",
         kDegree,
         {{"--gpus-per-node"}}});
  visit("intra_link",
        cluster.intra_link,
        Option{"link inside a machine (`onerank list links`); auto: the GPU's", {{"--intra-link"}}}
            .of_the_cluster());
  visit("inter_link",
        cluster.inter_link,
        Option{"NIC between machines; auto: the usual one for the GPU", {{"--inter-link"}}}
            .of_the_cluster());
  visit("nics_per_node",
        cluster.nics_per_node,
        Option{"NICs of one machine; auto: the number that machines with this NIC usually have",
               kDegree,
               {{"--nics-per-node"}}}
            .of_the_cluster());
  visit("nodes_per_pod",
        cluster.nodes_per_pod,
        Option{"machines below one spine switch at full bandwidth; auto: all",
               kDegree,
               {{"--nodes-per-pod"}}}
            .of_the_cluster());
  visit("spine_oversubscription",
        cluster.spine_oversubscription,
        Option{"bandwidth inside a pod divided by bandwidth out of it: 7 for 7:1",
               Range{1, 1000, "1 for a network without oversubscription, 7 for 7:1"},
               {{"--spine-oversubscription"}}}
            .of_the_cluster());
  visit("sharp",
        cluster.sharp,
        Option{"let the network's switches reduce (InfiniBand SHARP, NCCL's CollNet)",
               {{"--sharp", "true"}}}
            .of_the_cluster());
  visit("nvls",
        cluster.nvls,
        Option{"let NVSwitches reduce if they can (NCCL_NVLS_ENABLE)",
               {{"--no-nvls", "false", "no reductions in NVSwitches (NCCL_NVLS_ENABLE=0)"}}}
            .of_the_cluster());
  visit("nccl_tests",
        cluster.nccl_tests,
        Option{"output files of nccl-tests from such machines; they replace the model for groups "
               "that they fit",
               {{"--nccl-tests"}}}
            .of_the_cluster());
  visit("gpu_deviation",
        cluster.gpu_deviation,
        {"standard deviation of the GPUs' time for the same arithmetic, as a share of the mean "
         "(ranks wait for the slowest GPU); 0: all GPUs are alike; auto: a published value of "
         "other clusters",
         Range{0, 0.2, "0.015 for 1.5 %, 0 for GPUs that are all alike"},
         {{"--gpu-deviation"}}});
  visit(
      "usd_per_gpu_hour",
      cluster.usd_per_gpu_hour,
      Option{
          "US dollars for one GPU hour, for the cost of the training", Range{0, 1e6}, {{"--price"}}}
          .of_the_cluster());
}

template <class Visitor>
void visit_fields(Visitor& visit, ParallelConfig& parallelism) {
  visit("tensor",
        parallelism.tensor,
        {"tensor parallel size",
         kDegree,
         {{"--tensor-model-parallel-size,--tensor-parallel-size,--tensor-parallel-degree,--tp"}}});
  visit("pipeline",
        parallelism.pipeline,
        {"pipeline parallel size (stages)",
         kDegree,
         {{"--pipeline-model-parallel-size,--pipeline-parallel-size,--pipeline-parallel-degree,--"
           "pp"}}});
  visit("context",
        parallelism.context,
        {"context parallel size",
         kDegree,
         {{"--context-parallel-size,--context-parallel-degree,--cp"}}});
  visit("context_comm",
        parallelism.context_comm,
        {"how context ranks exchange keys and values; supported are p2p (a ring) and a2a (Ulysses)",
         {{"--cp-comm-type"}}});
  visit("expert",
        parallelism.expert,
        {"expert parallel size",
         kDegree,
         {{"--expert-model-parallel-size,--expert-parallel-size,--expert-parallel-degree,--ep"}}});
  visit("expert_tensor",
        parallelism.expert_tensor,
        {"tensor parallel size of the experts; auto: the tensor parallel size",
         kDegree,
         {{"--expert-tensor-parallel-size,--etp"}}});
  visit("data",
        parallelism.data,
        {"data parallel size; auto: world size / (tensor x pipeline x context)",
         kDegree,
         {{"--data-parallel-size,--dp"}}});
  visit("use_tp_pp_dp_mapping",
        parallelism.use_tp_pp_dp_mapping,
        {"pipeline stages are inside of data ranks: ranks go by tensor, context, pipeline, data",
         {{"--use-tp-pp-dp-mapping", "true"}}});
  visit("sequence_parallel",
        parallelism.sequence_parallel,
        {"sequence parallelism: divide norms and dropout among the tensor ranks",
         {{"--sequence-parallel,--sp", "true"}}});
  visit("pipeline_schedule",
        parallelism.pipeline_schedule,
        {"pipeline schedule; 1f1b with virtual stages is interleaved", {{"--pipeline-schedule"}}});
  visit("virtual_stages",
        parallelism.virtual_stages,
        {"model chunks on each stage (interleaving)",
         kDegree,
         {{"--num-virtual-stages-per-pipeline-rank,--vpp,--vp"}}});
  visit("microbatch_group_size_per_virtual_stage",
        parallelism.microbatch_group_size_per_virtual_stage,
        {"micro-batches that go through one model chunk before the next chunk; auto: the pipeline "
         "size",
         {{"--microbatch-group-size-per-virtual-pipeline-stage"}}});
  visit("layers_per_stage",
        parallelism.layers_per_stage,
        {"number of layers of each stage, or of each virtual stage in model order; empty: evenly "
         "divided",
         Range{0, kDegree.most},
         {{"--num-layers-per-stage",
           "",
           "number of layers of each stage, or of each virtual stage in model order: 7,8,8,7; or "
           "even",
           "even="}}});
  visit("zero_stage",
        parallelism.zero_stage,
        {"ZeRO stage; 1: the distributed optimizer; 2 and 3: FSDP2, where 3 frees parameters after "
         "forward, or those of DeepSpeed in the framework deepspeed",
         {{"--use-distributed-optimizer", "1", "ZeRO stage 1"},
          {"--zero-stage"},
          {"--fsdp", "3", "FSDP2: ZeRO stage 3"}}});
  visit("num_distributed_optimizer_instances",
        parallelism.num_distributed_optimizer_instances,
        {"parts of the data ranks, each of which shards by itself, while gradients are all-reduced "
         "between them (hybrid sharding, HSDP): instances of Megatron-LM's distributed optimizer, "
         "or FSDP2's replicas",
         kDegree,
         {{"--num-distributed-optimizer-instances"}, {"--data-parallel-replicate-degree"}}});
  visit("use_layer_wise_param_layout",
        parallelism.use_layer_wise_param_layout,
        {"muon with the distributed optimizer: buffers are laid out so that each data rank reduces "
         "and gathers whole matrices; off: all ranks reduce all of them",
         {{"--no-use-layer-wise-param-layout", "false", "muon: gradients are all-reduced"}}});
  visit("bucket_elements",
        parallelism.bucket_elements,
        {"elements of a gradient bucket; auto: Megatron's max(40e6, 1e6 x data x context), "
         "transformers: PyTorch's 25 MiB",
         Range{1, kLargestWhole},
         {{"--ddp-bucket-size"}}});
  visit("reduce_bucket_size",
        parallelism.reduce_bucket_size,
        {"deepspeed: elements of the buffer from which gradients are reduced; auto: as the Trainer "
         "of transformers, hidden_size^2 (DeepSpeed's own default is 5e8)",
         Range{0, kLargestWhole},
         {{"--reduce-bucket-size"}}});
  visit("overlap_comm",
        parallelism.overlap_comm,
        {"deepspeed: reduce gradients beside the backward, from two buffers (stage 3: also gather "
         "parameters beside the computation); auto: only in ZeRO stage 3",
         {{"--overlap-comm", "true"}, {"--no-overlap-comm", "false", "deepspeed: no overlap"}}});
  visit("stage3_prefetch_bucket_size",
        parallelism.stage3_prefetch_bucket_size,
        {"deepspeed, ZeRO stage 3: elements of parameters that each module begins to gather ahead; "
         "auto: as the Trainer, 0.9 x hidden_size^2 (DeepSpeed's own default is 5e7)",
         Range{0, kLargestWhole},
         {{"--stage3-prefetch-bucket-size"}}});
  visit("stage3_param_persistence_threshold",
        parallelism.stage3_param_persistence_threshold,
        {"deepspeed, ZeRO stage 3: parameters of at most so many elements stay gathered; auto: as "
         "the Trainer, 10 x hidden_size (DeepSpeed's own default is 1e5)",
         Range{0, kLargestWhole},
         {{"--stage3-param-persistence-threshold"}}});
  visit("stage3_max_live_parameters",
        parallelism.stage3_max_live_parameters,
        {"deepspeed, ZeRO stage 3: elements that are gathered at once, beyond which none are "
         "gathered ahead",
         Range{0, kLargestWhole},
         {{"--stage3-max-live-parameters"}}});
  visit("stage3_max_reuse_distance",
        parallelism.stage3_max_reuse_distance,
        {"deepspeed, ZeRO stage 3: a parameter that is used again within so many elements stays "
         "gathered",
         Range{0, kLargestWhole},
         {{"--stage3-max-reuse-distance"}}});
  visit("sub_group_size",
        parallelism.sub_group_size,
        {"deepspeed, ZeRO stage 3: elements of the parts of parameters that are updated at once",
         Range{1, kLargestWhole},
         {{"--sub-group-size"}}});
  visit("overlap_grad_reduce",
        parallelism.overlap_grad_reduce,
        {"reduce gradients during the last backward", {{"--overlap-grad-reduce", "true"}}});
  visit("overlap_param_gather",
        parallelism.overlap_param_gather,
        {"gather parameters during the first forward", {{"--overlap-param-gather", "true"}}});
  visit("overlap_p2p_communication",
        parallelism.overlap_p2p_communication,
        {"with virtual stages: overlap sends between stages with compute",
         {{"--no-overlap-p2p-communication", "false", "with virtual stages: wait for each send"}}});
  visit("overlap_p2p_warmup_flush",
        parallelism.overlap_p2p_warmup_flush,
        {"megatron-lm, with virtual stages: overlap sends in the warm-up and the flush of the "
         "pipeline, too, where stages receive one step ahead",
         {{"--overlap-p2p-communication-warmup-flush", "true"}}});
  visit("defer_embedding_wgrad_compute",
        parallelism.defer_embedding_wgrad_compute,
        {"megatron-lm: the last stage computes the weight gradients of the output layer while the "
         "other stages flush the pipeline",
         {{"--defer-embedding-wgrad-compute", "true"}}});
  visit("wgrad_deferral_limit",
        parallelism.wgrad_deferral_limit,
        {"micro-batches of a step whose weight gradients are deferred, with "
         "--defer-embedding-wgrad-compute; 0: all",
         Range{0, kLargestWhole},
         {{"--wgrad-deferral-limit"}}});
  visit("tp_comm_overlap",
        parallelism.tp_comm_overlap,
        {"overlap the tensor ranks' communication with matrix products (TransformerEngine's user "
         "buffers)",
         {{"--tp-comm-overlap", "true"}}});
  visit(
      "tp_linear_async_communication",
      parallelism.tp_linear_async_communication,
      {"nanotron: a tensor rank multiplies its own part of the sequence while the other parts are "
       "gathered, and collectives of the backward run beside its products",
       {{"--tp-linear-async-communication", "true"}}});
  visit(
      "tp_recompute_allgather",
      parallelism.tp_recompute_allgather,
      {"nanotron: column-parallel layers keep their part of the sequence, not the gathered input, "
       "and gather it again in the backward",
       {{"--tp-recompute-allgather", "true"}}});
}

template <class Visitor>
void visit_fields(Visitor& visit, TrainingConfig& training) {
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
         {{"--gradient-accumulation-steps"}}});
  visit("sequence_length",
        training.sequence_length,
        {"tokens of a sample; auto: the model's maximum, at most 8192",
         kSequence,
         {{"--seq-length,--seq"}}});
  visit("dtype",
        training.dtype,
        {"type of parameters and activations",
         {{"--bf16", "\"bf16\"", "parameters in bfloat16"},
          {"--fp16", "\"fp16\"", "parameters in half precision"},
          {"--fp32", "\"fp32\"", "parameters in single precision"},
          {"--dtype", "", "", "bfloat16=bf16,float16=fp16,float32=fp32,half=fp16,float=fp32"}}});
  visit("mixed_precision",
        training.mixed_precision,
        {"transformers: parameters are in fp32, and computation in 16 bits: under autocast, or by "
         "FSDP2's policy (accelerate's mixed_precision); off: all is in the type of the model; "
         "auto: on there in 16 bits",
         {{"--no-mixed-precision", "false", "parameters are in the type of the computation"}}});
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
         {{"--no-decay-groups", "false", "the optimizer has one group of parameters"}}});
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
        {"accepted with --optimizer-cpu-offload, which turns it on; else not supported",
         {{"--use-precision-aware-optimizer", "true"}}});
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
  visit("recompute",
        training.recompute,
        {"activation recomputation: selective recomputes core attention (torchtitan: see "
         "--selective-ac-option), full recomputes whole layers",
         {{"--recompute,--recompute-granularity"},
          {"--recompute-activations", "\"selective\"", "the same as selective"}}});
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
         {{"--selective-ac-option"}}});
  visit("attention",
        training.attention,
        {"attention kernel: flash (flash-attn), flash1 (its version 1), fused (cuDNN) or unfused; "
         "auto: what the framework uses on this GPU",
         {{"--attention-backend", "", "", "local=unfused"},
          {"--attention"},
          {"--use-flash-attn", "\"flash\"", "the same as flash"}}});
  visit(
      "framework",
      training.framework,
      Option{
          "framework whose layers, buffers and kernels are simulated (`onerank list frameworks`); "
          "auto: torchtitan for ZeRO stages 2 and 3, which are FSDP2, else megatron-lm",
          {{"--framework"}, {"--dialect", "", "the older name of --framework"}}}
          .formerly("dialect"));
  visit("transformer_impl",
        training.transformer_impl,
        {"megatron-lm: TransformerEngine's layers, or Megatron-LM's own (local)",
         {{"--transformer-impl"}}});
  visit(
      "megatron_core",
      training.megatron_core,
      {"megatron-lm: version of its core, 0.13.1; empty: the newest that is known, 0.14 and later",
       {{"--megatron-core"}}});
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
  visit("fp8_param_gather",
        training.fp8_param_gather,
        {"of 8 bits: the weights of these layers are in 8 bits alone, and are gathered so after a "
         "step; the distributed optimizer keeps them in fp32",
         {{"--fp8-param-gather", "true"}}});
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
  visit(
      "attention_softmax_in_fp32",
      training.attention_softmax_in_fp32,
      {"megatron-lm, local layers: where the softmax is not one kernel, it reads and keeps fp32",
       {{"--attention-softmax-in-fp32",
         "true",
         "the softmax is in fp32, which is the default here"},
        {"--no-attention-softmax-in-fp32", "false", "the softmax is in the type of the scores"}}});
  visit("rope_fusion",
        training.rope_fusion,
        {"megatron-lm: one kernel for rotary positions",
         {{"--no-rope-fusion", "false", "rotary positions are PyTorch's operators"}}});
  visit("rms_norm_fusion",
        training.rms_norm_fusion,
        {"torchtitan and plain: RMSNorm is one kernel (transformers: never)",
         {{"--no-rms-norm-fusion",
           "false",
           "RMSNorm is several kernels, as in TorchTitan until March 2025"}}});
  visit("attention_mask_in_dataloader",
        training.attention_mask_in_dataloader,
        {"megatron-lm: each micro-batch carries its attention mask [b, 1, s, s]; auto: on there",
         {{"--create-attention-mask-in-dataloader", "true", "micro-batches carry their mask"},
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
         {{"--fill-uninitialized-memory", "true"}}});
  visit("check_for_nan_in_loss_and_grad",
        training.check_for_nan_in_loss_and_grad,
        {"megatron-lm: check each loss and each gradient bucket for NaN, for which the host waits; "
         "auto: on there, except in fp16",
         {{"--no-check-for-nan-in-loss-and-grad",
           "false",
           "do not check losses and gradients for NaN"}}});
  visit("moe_token_dispatcher_type",
        training.moe_token_dispatcher_type,
        {"how tokens are sent to their experts; flex is not supported",
         {{"--moe-token-dispatcher-type"}}});
  visit("moe_router_dtype",
        training.moe_router_dtype,
        {"type of the router's logits and of the experts' weights; none: that of the tokens",
         {{"--moe-router-dtype"}}});
  visit("moe_grouped_gemm",
        training.moe_grouped_gemm,
        {"the products of all experts of a rank are issued together, not expert by expert",
         {{"--moe-grouped-gemm", "true"},
          {"--no-moe-grouped-gemm", "false", "experts run one after another"}}});
  visit("moe_expert_capacity_factor",
        training.moe_expert_capacity_factor,
        {"capacity of an expert for the tokens of a rank, as a factor of the mean; further tokens "
         "are dropped; auto: no token is dropped",
         {{"--moe-expert-capacity-factor"}}});
  visit("moe_pad_expert_input_to_capacity",
        training.moe_pad_expert_input_to_capacity,
        {"pad the tokens of each expert to its capacity",
         {{"--moe-pad-expert-input-to-capacity", "true"}}});
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
               {{"--train-tokens"}}}
            .of_the_cluster());
  visit("seed", training.seed, {"seed of the random weights, data and dropout", {{"--seed"}}});
}

template <class Visitor>
void visit_fields(Visitor& visit, ReliabilityConfig& reliability) {
  visit("gpu_hours_between_failures",
        reliability.gpu_hours_between_failures,
        {"mean time between failures of the job x number of its GPUs, in hours; auto: Llama 3's",
         Range{1e-3, 1e12},
         {{"--gpu-hours-between-failures"}}});
  visit("restart_seconds",
        reliability.restart_seconds,
        {"seconds from a failure to training again: detect, restart, load",
         Range{1e-3, kSeconds.most},
         {{"--restart-seconds"}}});
  visit("checkpoint_seconds",
        reliability.checkpoint_seconds,
        {"seconds that training stands still for one checkpoint",
         Range{1e-3, kSeconds.most},
         {{"--checkpoint-seconds"}}});
  visit("save_interval",
        reliability.save_interval,
        {"steps between checkpoints; auto: Daly's best",
         Range{1, kLargestWhole},
         {{"--save-interval"}}});
}

template <class Visitor>
void visit_fields(Visitor& visit, MemoryConfig& memory) {
  visit("allocator", memory.allocator, {"PYTORCH_CUDA_ALLOC_CONF of the job", {{"--allocator"}}});
  visit("cuda_module_loading",
        memory.cuda_module_loading,
        "CUDA_MODULE_LOADING of the job: lazy, or eager as before CUDA 11.7");
  visit("cublas_workspace",
        memory.cublas_workspace,
        {"CUBLAS_WORKSPACE_CONFIG of the job: :4096:8 is 8 x 4,096 KiB", {{"--cublas-workspace"}}});
  visit("headroom_bytes",
        memory.headroom_bytes,
        Option{"memory that must stay free for the verdict to be yes: 10%, 8GiB",
               kBytes,
               {{"--headroom"}}}
            .of_the_cluster());
}

template <class Visitor>
void visit_fields(Visitor& visit, TimeConfig& time) {
  visit("calibration",
        time.calibration,
        "file of `onerank calibrate`, whose rates are used for kernels");
  visit("launch_blocking",
        time.launch_blocking,
        "CUDA_LAUNCH_BLOCKING=1 of the job: the host waits for every kernel");
  visit(
      "data_loading_seconds",
      time.data_loading_seconds,
      {"seconds that a rank's data loader takes for one micro-batch, with all its workers; it "
       "works ahead, so a step waits only if loading its micro-batches takes longer than the step",
       Range{0, 1e6}});
  visit("cpu_adam_parameters_per_second",
        time.cpu_adam_parameters_per_second,
        {"parameters that the CPUs of one machine update together in a second, with "
         "--optimizer-cpu-offload; auto: a published value",
         Range{1, 1e15}});
}

template <class Visitor>
void visit_fields(Visitor& visit, ModelPreset& preset) {
  visit("name", preset.name, "the name to type");
  visit("aliases", preset.aliases, "other names");
  visit("parameters", preset.parameters, "published parameter count");
  visit("source", preset.source, "where the shape comes from");
  visit("config", preset.config, "the shape");
}

}  // namespace estimator
