// The options of parallelism: degrees, sharding, and what overlaps; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

template <class Visitor>
void visit_degrees(Visitor& visit, ParallelConfig& parallelism) {
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
         {ours({"--data-parallel-size,--dp"})}});
  visit("use_tp_pp_dp_mapping",
        parallelism.use_tp_pp_dp_mapping,
        {"pipeline stages are inside of data ranks: ranks go by tensor, context, pipeline, data",
         {{"--use-tp-pp-dp-mapping", "true"}}});
  visit("sequence_parallel",
        parallelism.sequence_parallel,
        {"sequence parallelism: divide norms and dropout among the tensor ranks",
         {{"--sequence-parallel,--sp", "true"}}});
}

template <class Visitor>
void visit_pipeline(Visitor& visit, ParallelConfig& parallelism) {
  visit("pipeline_schedule",
        parallelism.pipeline_schedule,
        {"pipeline schedule; 1f1b with virtual stages is interleaved",
         {ours({"--pipeline-schedule"})}});
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
  visit(
      "layers_per_stage",
      parallelism.layers_per_stage,
      {"number of layers of each stage, or of each virtual stage in model order; empty: evenly "
       "divided",
       Range{0, kDegree.most},
       {ours(
           {"--num-layers-per-stage",
            "",
            "number of layers of each stage, or of each virtual stage in model order: 7,8,8,7; or "
            "even",
            "even="})}});
}

template <class Visitor>
void visit_sharding(Visitor& visit, ParallelConfig& parallelism) {
  visit(
      "zero_stage",
      parallelism.zero_stage,
      {"ZeRO stage; 1: the distributed optimizer; 2 and 3: FSDP2, where 3 frees parameters after "
       "forward, or those of DeepSpeed in the framework deepspeed; auto: 0, or 3 (in a pipeline 2) "
       "where TorchTitan has data ranks",
       {{"--use-distributed-optimizer", "1", "ZeRO stage 1"},
        ours({"--zero-stage"}),
        ours({"--fsdp", "3", "FSDP2: ZeRO stage 3"})}});
  visit(
      "reshard_last_unit",
      parallelism.reshard_last_unit,
      {"torchtitan, ZeRO stage 3: norm and output layer, too, free their parameters after forward "
       "(fsdp_reshard_after_forward always)",
       {ours({"--reshard-last-unit", "true"})}});
  visit("num_distributed_optimizer_instances",
        parallelism.num_distributed_optimizer_instances,
        {"parts of the data ranks, each of which shards by itself, while gradients are all-reduced "
         "between them (hybrid sharding, HSDP): instances of Megatron-LM's distributed optimizer, "
         "or FSDP2's replicas",
         kDegree,
         {{"--num-distributed-optimizer-instances"}, ours({"--data-parallel-replicate-degree"})}});
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
}

template <class Visitor>
void visit_deepspeed(Visitor& visit, ParallelConfig& parallelism) {
  visit("reduce_bucket_size",
        parallelism.reduce_bucket_size,
        {"deepspeed: elements of the buffer from which gradients are reduced; auto: as the Trainer "
         "of transformers, hidden_size^2 (DeepSpeed's own default is 5e8)",
         Range{0, kLargestWhole},
         {ours({"--reduce-bucket-size"})}});
  visit("overlap_comm",
        parallelism.overlap_comm,
        {"deepspeed: reduce gradients beside the backward, from two buffers (stage 3: also gather "
         "parameters beside the computation); auto: only in ZeRO stage 3",
         {ours({"--overlap-comm", "true"}),
          ours({"--no-overlap-comm", "false", "deepspeed: no overlap"})}});
  visit("stage3_prefetch_bucket_size",
        parallelism.stage3_prefetch_bucket_size,
        {"deepspeed, ZeRO stage 3: elements of parameters that each module begins to gather ahead; "
         "auto: as the Trainer, 0.9 x hidden_size^2 (DeepSpeed's own default is 5e7)",
         Range{0, kLargestWhole},
         {ours({"--stage3-prefetch-bucket-size"})}});
  visit("stage3_param_persistence_threshold",
        parallelism.stage3_param_persistence_threshold,
        {"deepspeed, ZeRO stage 3: parameters of at most so many elements stay gathered; auto: as "
         "the Trainer, 10 x hidden_size (DeepSpeed's own default is 1e5)",
         Range{0, kLargestWhole},
         {ours({"--stage3-param-persistence-threshold"})}});
  visit("stage3_max_live_parameters",
        parallelism.stage3_max_live_parameters,
        {"deepspeed, ZeRO stage 3: elements that are gathered at once, beyond which none are "
         "gathered ahead",
         Range{0, kLargestWhole},
         {ours({"--stage3-max-live-parameters"})}});
  visit("stage3_max_reuse_distance",
        parallelism.stage3_max_reuse_distance,
        {"deepspeed, ZeRO stage 3: a parameter that is used again within so many elements stays "
         "gathered",
         Range{0, kLargestWhole},
         {ours({"--stage3-max-reuse-distance"})}});
  visit("sub_group_size",
        parallelism.sub_group_size,
        {"deepspeed, ZeRO stage 3: elements of the parts of parameters that are updated at once",
         Range{1, kLargestWhole},
         {ours({"--sub-group-size"})}});
}

template <class Visitor>
void visit_data_overlap(Visitor& visit, ParallelConfig& parallelism) {
  visit("overlap_grad_reduce",
        parallelism.overlap_grad_reduce,
        {"reduce gradients during the last backward", {{"--overlap-grad-reduce", "true"}}});
  visit("overlap_param_gather",
        parallelism.overlap_param_gather,
        {"gather parameters during the first forward", {{"--overlap-param-gather", "true"}}});
  visit("overlap_param_gather_with_optimizer_step",
        parallelism.overlap_param_gather_with_optimizer_step,
        {"megatron-lm, with virtual stages: gather the parameters of the first chunk while the "
         "optimizer updates the others",
         {{"--overlap-param-gather-with-optimizer-step", "true"}}});
}

template <class Visitor>
void visit_pipeline_overlap(Visitor& visit, ParallelConfig& parallelism) {
  visit("overlap_p2p_communication",
        parallelism.overlap_p2p_communication,
        {"with virtual stages: overlap sends between stages with compute",
         {{"--no-overlap-p2p-communication", "false", "with virtual stages: wait for each send"}}});
  visit("overlap_p2p_warmup_flush",
        parallelism.overlap_p2p_warmup_flush,
        {"megatron-lm, with virtual stages: overlap sends in the warm-up and the flush of the "
         "pipeline, too, where stages receive one step ahead",
         {{"--overlap-p2p-communication-warmup-flush", "true"}}});
  visit("overlap_moe_expert_parallel_comm",
        parallelism.overlap_moe_expert_parallel_comm,
        {"megatron-lm: run the forward of a micro-batch together with the backward of another, so "
         "that tokens travel to and from their experts beside compute",
         {{"--overlap-moe-expert-parallel-comm", "true"}}});
  visit("delay_wgrad_compute",
        parallelism.delay_wgrad_compute,
        {"megatron-lm, with --overlap-moe-expert-parallel-comm: compute weight gradients of layers "
         "later, beside what is sent",
         {{"--delay-wgrad-compute", "true"}}});
  visit("ep_overlap_early_attn_memory_release",
        parallelism.ep_overlap_early_attn_memory_release,
        {"megatron-lm, with --overlap-moe-expert-parallel-comm: run the backward of attention "
         "before the experts' forward, so that its memory is free earlier",
         {{"--ep-overlap-early-attn-memory-release", "true"}}});
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
}

template <class Visitor>
void visit_tensor_overlap(Visitor& visit, ParallelConfig& parallelism) {
  visit("tp_comm_overlap",
        parallelism.tp_comm_overlap,
        {"overlap the tensor ranks' communication with matrix products (TransformerEngine's user "
         "buffers)",
         {{"--tp-comm-overlap", "true"}}});
  visit(
      "tp_comm_overlap_disable_qkv",
      parallelism.tp_comm_overlap_disable_qkv,
      {"with --tp-comm-overlap: the product that makes queries, keys and values does not overlap, "
       "so that an adapter beside it reads the same gathered input",
       {ours({"--tp-comm-overlap-disable-qkv", "true"})}});
  visit(
      "tp_linear_async_communication",
      parallelism.tp_linear_async_communication,
      {"nanotron: a tensor rank multiplies its own part of the sequence while the other parts are "
       "gathered, and collectives of the backward run beside its products",
       {ours({"--tp-linear-async-communication", "true"})}});
  visit(
      "tp_recompute_allgather",
      parallelism.tp_recompute_allgather,
      {"nanotron: column-parallel layers keep their part of the sequence, not the gathered input, "
       "and gather it again in the backward",
       {ours({"--tp-recompute-allgather", "true"})}});
}

template <class Visitor>
void visit_fields(Visitor& visit, ParallelConfig& parallelism) {
  visit_degrees(visit, parallelism);
  visit_pipeline(visit, parallelism);
  visit_sharding(visit, parallelism);
  visit_deepspeed(visit, parallelism);
  visit_data_overlap(visit, parallelism);
  visit_pipeline_overlap(visit, parallelism);
  visit_tensor_overlap(visit, parallelism);
}

}  // namespace estimator
