#include <algorithm>
#include <cmath>
#include <limits>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/attention_choice.h"
#include "estimator/plan/cuda_graphs.h"
#include "estimator/plan/dealt_layers.h"
#include "estimator/plan/frameworks.h"
#include "estimator/resolve/plan_rules.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

int64_t model_ranks(const ParallelConfig& p) { return p.tensor * p.pipeline * p.context; }

namespace {

/// The largest number where the product is larger.
int64_t product(int64_t a, int64_t b) {
  int64_t both = 0;
  return __builtin_mul_overflow(a, b, &both) ? std::numeric_limits<int64_t>::max() : both;
}

}  // namespace

int64_t ranks_needed(const ParallelConfig& p) {
  return product(model_ranks(p), p.data.value_or(1));
}

namespace {

/// One NIC for each GPU, or what the link says of its machines; at least one.
int64_t usual_nics(const ClusterConfig& cluster) {
  const Link* link = cluster.inter_link.is_known() ? find_link(cluster.inter_link) : nullptr;
  const double of_each = link ? link->nics_per_gpu : 1;
  const double nics = of_each * static_cast<double>(cluster.gpus_per_node);
  return std::max<int64_t>(1, std::llround(nics));
}

/// Layers of each stage as nanotron cuts them (build_model in models/base.py): a stage takes
/// blocks, in order, until their cost is beyond its share of the whole. A layer has a cost and the
/// head has one (get_block_compute_costs in models/llama.py).
std::vector<int64_t> stages_by_cost(const ModelConfig& m, int64_t stages) {
  const auto hidden = static_cast<double>(m.hidden_size);
  const double layer = 4 * hidden * hidden + 3 * static_cast<double>(m.ffn_hidden_size) * hidden;
  const double head = static_cast<double>(m.vocab_size) * hidden;
  const double share =
      (static_cast<double>(m.num_layers) * layer + head) / static_cast<double>(stages);
  std::vector<int64_t> layers(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (int64_t taken = 1; taken <= m.num_layers; ++taken) {
    ++layers[stage];
    const bool is_full =
        static_cast<double>(taken) * layer > share * static_cast<double>(stage + 1);
    if (is_full && stage + 1 < layers.size()) ++stage;
  }
  return layers;
}

/// Whether Megatron-LM would have no kernel for attention in the model's window.
bool lacks_window_kernel(Plan plan) {
  if (!plan.exceeds_window()) return false;
  plan.training.framework = Framework::kMegatronLm;
  plan.training.attention.fill_in(usual_attention(plan));
  return !has_window_kernel(plan);
}

/// FSDP2 is TorchTitan's, and everything else Megatron-LM's; of layers that neither has FSDP2 is
/// that of transformers, and everything else is plain.
Framework usual_framework(const Plan& plan) {
  if (plan.training.has_adapters()) return Framework::kTransformers;
  const bool is_divided = plan.parallelism.zero_stage.value_or(0) >= 2;
  const ModelConfig& m = plan.model;
  if (!m.layer_variants().empty() || m.parallel_residual ||
      (is_divided ? plan.exceeds_window() : lacks_window_kernel(plan))) {
    return is_divided ? Framework::kTransformers : Framework::kPlain;
  }
  return is_divided ? Framework::kTorchtitan : Framework::kMegatronLm;
}

void fill_in_determinism(TrainingConfig& training, MemoryConfig& memory) {
  training.fill_uninitialized_memory.fill_in(
      traits_of(training.framework).fills_when_deterministic);
  // What cuBLAS asks for (its manual, "Results reproducibility"), and Megatron-LM sets
  // (megatron/training/determinism.py).
  if (memory.cublas_workspace.empty()) memory.cublas_workspace = ":4096:8";
}

/// TorchTitan shards over all ranks that are left, and in a pipeline leaves what it has gathered
/// (data_parallel_shard_degree = -1 and fsdp_reshard_after_forward = "default").
int64_t usual_zero_stage(const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  if (plan.training.framework != Framework::kTorchtitan || p.data.value_or(1) == 1) return 0;
  return p.pipeline > 1 ? 2 : 3;
}

}  // namespace

int64_t usual_gpus_per_node(const ClusterConfig& cluster) {
  const Gpu* gpu = find_gpu(cluster.gpu);
  return gpu ? gpu->machine_gpus : Gpu{}.machine_gpus;
}

void fill_in_hardware(ClusterConfig& cluster) {
  if (const Gpu* gpu = find_gpu(cluster.gpu)) {
    cluster.gpu = gpu->id;
    cluster.intra_link.fill_in(gpu->default_intra_link);
    cluster.inter_link.fill_in(gpu->default_inter_link);
  }
  cluster.nics_per_node.fill_in(usual_nics(cluster));
}

/// What transformers puts in the place of "auto" (trainer_config_finalize in
/// transformers/integrations/deepspeed.py, v4.57.3), and DeepSpeed's own default of overlap_comm.
void fill_in_deepspeed(Plan& plan) {
  ParallelConfig& p = plan.parallelism;
  const bool is_used = traits_of(plan.training.framework).deepspeed_engine;
  const int64_t hidden = is_used ? plan.model.hidden_size : 0;
  p.reduce_bucket_size.fill_in(hidden * hidden);
  p.stage3_prefetch_bucket_size.fill_in(
      static_cast<int64_t>(0.9 * static_cast<double>(hidden * hidden)));
  p.stage3_param_persistence_threshold.fill_in(10 * hidden);
  p.overlap_comm.fill_in(is_used && p.zero_stage == 3);
}

void fill_in_defaults(Plan& plan, const PlanContext& context) {
  ClusterConfig& c = plan.cluster;
  ParallelConfig& p = plan.parallelism;
  TrainingConfig& t = plan.training;

  constexpr int64_t kLongestUsualSequence = 8192;
  t.sequence_length.fill_in(std::min(plan.model.max_position_embeddings, kLongestUsualSequence));
  t.framework.fill_in(usual_framework(plan));
  if (!c.gpus_per_node.is_known()) {
    const int64_t usual = usual_gpus_per_node(c);
    const int64_t world = context.world_size.value_or(usual);
    c.gpus_per_node = c.nodes.is_known() ? usual : std::clamp<int64_t>(world, 1, usual);
  }
  if (!c.nodes.is_known() && c.gpus_per_node > 0) {
    if (context.world_size && *context.world_size % c.gpus_per_node == 0) {
      c.nodes = *context.world_size / c.gpus_per_node;
    } else if (!context.world_size && p.data.is_known() && p.data > 0) {
      const int64_t world = ranks_needed(p);
      c.gpus_per_node = std::min<int64_t>(c.gpus_per_node, world);
      if (world % c.gpus_per_node == 0) c.nodes = world / c.gpus_per_node;
    }
  }
  if (!p.data.is_known() && c.nodes.is_known() && model_ranks(p) > 0 &&
      plan.world_size() % model_ranks(p) == 0) {
    p.data = plan.world_size() / model_ranks(p);
  }
  p.zero_stage.fill_in(usual_zero_stage(plan));
  Activation& activation = plan.model.activation;
  if (activation == Activation::kGeluNew && !traits_of(t.framework).gelu_new_of_operators) {
    activation = Activation::kGelu;
  }
  const bool has_expert_biases = plan.model.has_experts() && plan.model.has_mlp_bias();
  // TEGroupedMLP in megatron/core/transformer/moe/experts.py asks for both.
  if (has_expert_biases && traits_of(t.framework).megatron_fusions) t.bias_dropout_fusion = false;
  p.expert_tensor.fill_in(plan.model.has_experts() && !has_expert_biases ? p.tensor : 1);
  if (traits_of(t.framework).stages_by_cost && p.layers_per_stage.empty() && p.pipeline > 1 &&
      p.virtual_stages == 1) {
    p.layers_per_stage = stages_by_cost(plan.model, p.pipeline);
  }
  if (plan.torch_pipeline() && p.layers_per_stage.empty()) {
    p.layers_per_stage = dealt_layers(
        {.layers = plan.model.num_layers, .pieces = product(p.pipeline, p.virtual_stages)});
  }
  if (p.tensor == 1) {  // as Megatron-LM does
    p.sequence_parallel = p.tp_comm_overlap = p.tp_comm_overlap_disable_qkv = false;
    p.tp_linear_async_communication = p.tp_recompute_allgather = false;
    t.distribute_saved_activations = false;  // a part is the whole
  }

  if (t.optimizer_cpu_offload) t.use_precision_aware_optimizer = true;  // Megatron asks for both

  if (p.data.is_known()) {
    t.global_batch_size.fill_in(
        product(t.micro_batch_size * p.data, t.gradient_accumulation_steps.value_or(1)));
  }
  t.make_vocab_size_divisible_by.fill_in(traits_of(t.framework).vocabulary_multiple);
  t.mixed_precision.fill_in(traits_of(t.framework).mixed_precision && t.dtype != Dtype::kFp32);
  t.decay_groups.fill_in(traits_of(t.framework).decay_groups);
  if (const int64_t bytes = traits_of(t.framework).bucket_bytes) {
    p.bucket_elements.fill_in(bytes / bytes_per_element(t.parameter_dtype()));
    p.overlap_grad_reduce = p.zero_stage == 0;  // PyTorch's reducer always does
  }
  if (p.data.is_known()) {
    // Megatron-LM's DDP (megatron/training/training.py).
    p.bucket_elements.fill_in(std::max<int64_t>(40'000'000, 1'000'000 * plan.replicas()));
  }
  fill_in_deepspeed(plan);
  fill_in_hardware(c);
  t.attention.fill_in(usual_attention(plan));
  if (t.deterministic_mode) fill_in_determinism(t, plan.memory);
  // megatron/training/arguments.py: --no-create-attention-mask-in-dataloader turns it off.
  t.attention_mask_in_dataloader.fill_in(traits_of(t.framework).mask_in_dataloader);
  t.check_for_nan_in_loss_and_grad.fill_in(traits_of(t.framework).checks_for_nan &&
                                           t.dtype != Dtype::kFp16 && !captures_iteration(t));
}

}  // namespace estimator
