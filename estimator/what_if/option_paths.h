// Paths of the options that changes of a plan and the search set.
#pragma once

namespace estimator::paths {

inline constexpr const char* kPreset = "model.preset";
inline constexpr const char* kNodes = "cluster.nodes";
inline constexpr const char* kGpusPerNode = "cluster.gpus_per_node";
inline constexpr const char* kData = "parallelism.data";
inline constexpr const char* kLayersPerStage = "parallelism.layers_per_stage";
inline constexpr const char* kSequenceParallel = "parallelism.sequence_parallel";
inline constexpr const char* kZeroStage = "parallelism.zero_stage";
inline constexpr const char* kOptimizerInstances =
    "parallelism.num_distributed_optimizer_instances";
inline constexpr const char* kOverlapReduce = "parallelism.overlap_grad_reduce";
inline constexpr const char* kOverlapGather = "parallelism.overlap_param_gather";
inline constexpr const char* kExpertTensor = "parallelism.expert_tensor";
inline constexpr const char* kTensor = "parallelism.tensor";
inline constexpr const char* kPipeline = "parallelism.pipeline";
inline constexpr const char* kContext = "parallelism.context";
inline constexpr const char* kExpert = "parallelism.expert";
inline constexpr const char* kVirtual = "parallelism.virtual_stages";
inline constexpr const char* kMicroBatch = "training.micro_batch_size";
inline constexpr const char* kGlobalBatch = "training.global_batch_size";
inline constexpr const char* kAccumulation = "training.gradient_accumulation_steps";
inline constexpr const char* kAttention = "training.attention";
inline constexpr const char* kFramework = "training.framework";
inline constexpr const char* kDtype = "training.dtype";
inline constexpr const char* kRecompute = "training.recompute";
inline constexpr const char* kRecomputeMethod = "training.recompute_method";
inline constexpr const char* kRecomputeLayers = "training.recompute_num_layers";
inline constexpr const char* kSelectiveOption = "training.selective_ac_option";
inline constexpr const char* kAllocator = "memory.allocator";

}  // namespace estimator::paths
