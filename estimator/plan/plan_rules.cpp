#include "estimator/plan/plan_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/allocator_settings.h"
#include "estimator/plan/attention_choice.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/plan/rule_list.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

constexpr int64_t kLargestWorld = 1'000'000;
// No published batch has as many samples, and no stage of a data rank as many.
constexpr int64_t kLargestBatch = 1 << 20, kLargestBatchOfRank = 1024;
constexpr int64_t kLargestSize = 1'000'000'000;  // of one dimension of the model
// What is larger is a mistake in typing: published models have up to 1,000 layers (DeepNet, arXiv
// 2203.00555), 128 heads, a width of 25,600, 2,048 experts and 262,144 tokens.
constexpr int64_t kMostLayers = 4096, kMostHeads = 4096, kLargestWidth = 1 << 18;
constexpr int64_t kMostExperts = 4096, kLargestVocabulary = 1 << 24, kMostPredictions = 64;

/// A size that a model without a preset has from the user alone; 0 stands where nobody gave it.
struct GivenSize {
  int64_t ModelConfig::*value;
  const char* key;
  const char* flag;
  const char* example;
  int64_t most;
};
constexpr GivenSize kGivenSizes[] = {
    {&ModelConfig::num_layers, "num_layers", "--num-layers", "32", kMostLayers},
    {&ModelConfig::hidden_size, "hidden_size", "--hidden-size", "4096", kLargestWidth},
    {&ModelConfig::num_attention_heads,
     "num_attention_heads",
     "--num-attention-heads",
     "32",
     kMostHeads},
    {&ModelConfig::vocab_size, "vocab_size", "--vocab-size", "50257", kLargestVocabulary},
    {&ModelConfig::max_position_embeddings,
     "max_position_embeddings",
     "--max-position-embeddings",
     "4096",
     kLargestSize}};

void check_model_shape(Rules& rules) {
  for (const GivenSize& size : kGivenSizes) {
    const int64_t value = rules.plan_.model.*size.value;
    const std::string key = fmt::format("model.{}", size.key);
    if (value != 0) {
      rules.in_range(1, size.most, value, key);
      continue;
    }
    rules.require(false,
                  fmt::format("the model has no {}", size.key),
                  key + " = 0",
                  fmt::format("give {} (such as {}), or {} in a file, or name a model of `onerank "
                              "list models`",
                              size.flag,
                              size.example,
                              key));
  }
}

/// Of numbers that a model derives from others where the plan does not give them.
void check_model_ranges(Rules& rules) {
  const ModelConfig& m = rules.plan_.model;
  const auto degree = [&](int64_t value, const std::string& key) {
    rules.in_range(1, kLargestWidth, value, key);
  };
  constexpr int64_t kLargestHidden = 64 * kLargestWidth;
  check_model_shape(rules);
  rules.in_range(1, kMostHeads, m.num_query_groups, "model.num_query_groups");
  const bool has_width = m.num_attention_heads <= m.hidden_size || m.kv_channels > 0;
  rules.require(has_width,
                "there are more attention heads than columns of the model",
                fmt::format("model.num_attention_heads = {}, model.hidden_size = {}",
                            m.num_attention_heads,
                            m.hidden_size),
                "use fewer heads, or give --kv-channels, the width of a head");
  if (has_width) degree(m.kv_channels, "model.kv_channels");
  rules.in_range(0, kLargestWidth, m.q_lora_rank, "model.q_lora_rank");
  degree(m.kv_lora_rank, "model.kv_lora_rank");
  degree(m.qk_head_dim, "model.qk_head_dim");
  degree(m.qk_pos_emb_head_dim, "model.qk_pos_emb_head_dim");
  degree(m.v_head_dim, "model.v_head_dim");
  rules.in_range(1, kLargestHidden, m.ffn_hidden_size, "model.ffn_hidden_size");
  rules.in_range(0, kMostExperts, m.num_experts, "model.num_experts");
  rules.in_range(1, kMostExperts, m.moe_router_topk, "model.moe_router_topk");
  rules.in_range(0, kMostPredictions, m.mtp_num_layers, "model.mtp_num_layers");
  rules.in_range(0, kLargestHidden, m.moe_ffn_hidden_size, "model.moe_ffn_hidden_size");
  rules.in_range(0,
                 kLargestHidden,
                 m.moe_shared_expert_intermediate_size,
                 "model.moe_shared_expert_intermediate_size");
  rules.require(m.norm_epsilon > 0,
                "the norm's epsilon is not positive",
                fmt::format("model.norm_epsilon = {}", m.norm_epsilon),
                "use 1e-5");
  rules.require(m.rotary_base > 1,
                "the rotary base is not above 1",
                fmt::format("model.rotary_base = {}", m.rotary_base),
                "use 10000");
  rules.require(m.rotary_percent > 0 && m.rotary_percent <= 1,
                "the part of a head with rotary positions is not in (0, 1]",
                fmt::format("model.rotary_percent = {}", m.rotary_percent),
                "use 1 for the whole head");
  for (const auto& [key, value] : {std::pair{"model.hidden_dropout", m.hidden_dropout},
                                   std::pair{"model.attention_dropout", m.attention_dropout}}) {
    rules.require(value >= 0 && value < 1,
                  "a dropout probability is not in [0, 1)",
                  fmt::format("{} = {}", key, value),
                  "use 0 for no dropout");
  }
}

/// A number without a unit counts bytes, which nobody means.
void check_headroom(Rules& rules) {
  constexpr int64_t kLeast = int64_t{1} << 20;
  const int64_t bytes = rules.plan_.memory.headroom_bytes;
  rules.require(bytes <= 0 || bytes >= kLeast,
                "the headroom is less than a MiB",
                fmt::format("memory.headroom_bytes = {}", bytes),
                fmt::format("write --headroom {}GiB or --headroom {}%", bytes, bytes));
}

void check_cluster_alone(Rules& rules) {
  const ClusterConfig& c = rules.plan_.cluster;
  rules.require(find_gpu(c.gpu) != nullptr,
                c.gpu.empty() ? "the plan names no GPU" : "unknown GPU",
                fmt::format("cluster.gpu = \"{}\"", c.gpu),
                gpu_help(c.gpu));
  for (const auto& [key, link] : {std::pair{"cluster.intra_link", c.intra_link},
                                  std::pair{"cluster.inter_link", c.inter_link}}) {
    rules.require(!link.is_known() || find_link(link) != nullptr,
                  "unknown link",
                  fmt::format("{} = \"{}\"", key, link.value_or("")),
                  link_help(link.value_or("")));
  }
  const Link* inside = c.intra_link.is_known() ? find_link(c.intra_link) : nullptr;
  rules.require(inside == nullptr || inside->kind == "nvlink" || inside->kind == "pcie",
                "a network link cannot be the link inside a machine",
                fmt::format("cluster.intra_link = \"{}\"", c.intra_link.value_or("")),
                "use a link of the kinds nvlink and pcie, see `onerank list links`");
  rules.require(c.spine_oversubscription <= 1 || c.nodes_per_pod.has_value(),
                "the spine is oversubscribed, but where pods end is not known",
                fmt::format("cluster.spine_oversubscription = {}", c.spine_oversubscription),
                "give cluster.nodes_per_pod");
}

void check_cluster(Rules& rules, const PlanContext& context) {
  const Plan& plan = rules.plan_;
  const ClusterConfig& c = plan.cluster;
  const ParallelConfig& p = plan.parallelism;
  check_cluster_alone(rules);
  if (const Gpu* gpu = find_gpu(c.gpu)) {
    rules.require(
        gpu->supports(plan.training.dtype),
        "the GPU cannot compute in this type",
        fmt::format(
            "training.dtype = {}, cluster.gpu = {}", to_string(plan.training.dtype), gpu->id),
        "use fp16 or fp32, or a newer GPU");
  }
  if (!c.nodes.is_known() || !c.gpus_per_node.is_known() || c.nodes < 1 || c.gpus_per_node < 1) {
    const bool is_given = context.world_size && c.gpus_per_node.is_known();
    rules.require(
        c.nodes.is_known(),
        is_given ? "the GPUs do not fill whole machines" : "the size of the world is not known",
        is_given ? fmt::format("{} = {}, cluster.gpus_per_node = {}",
                               context.world_size_origin,
                               *context.world_size,
                               c.gpus_per_node)
                 : "cluster.nodes is missing",
        is_given ? "give a multiple of it, or --gpus-per-node for other machines"
                 : "give --nodes or --gpus, or cluster.nodes in a file, or set WORLD_SIZE");
    return;
  }
  const int64_t world = plan.world_size();
  rules.require(
      world <= kLargestWorld,
      "the world is too large",
      fmt::format("cluster.nodes = {}, cluster.gpus_per_node = {}", c.nodes, c.gpus_per_node),
      fmt::format("Onerank handles up to {} ranks", kLargestWorld));
  if (context.world_size) {
    rules.require(
        world == *context.world_size,
        fmt::format("{} is not the plan's world", context.world_size_origin),
        fmt::format("{} = {}, cluster.nodes {} x cluster.gpus_per_node {} = {}",
                    context.world_size_origin,
                    *context.world_size,
                    c.nodes,
                    c.gpus_per_node,
                    world),
        fmt::format(
            "set {} to {}, or change the plan's cluster", context.world_size_origin, world));
  }
  const int64_t needed = ranks_needed(p);
  rules.require(
      p.data.is_known() && needed == world,
      "the parallel degrees do not multiply to the world",
      fmt::format(
          "parallelism: tensor {} x pipeline {} x context {} x data {} {} {} ranks, world {}",
          p.tensor,
          p.pipeline,
          p.context,
          p.data.is_known() ? std::to_string(p.data) : "auto",
          p.data.is_known() ? "=" : "is at least",
          needed,
          world),
      world % model_ranks(p) == 0
          ? fmt::format("use data = {0} (--dp {0}), or --dp auto, which follows the other degrees",
                        world / model_ranks(p))
          : fmt::format("use a world that is a multiple of {}", model_ranks(p)));
}

std::vector<Remedy> tensor_sizes(int64_t value, int64_t wanted) {
  return {{"a tensor parallel size of {}", "parallelism.tensor", divisors_near(value, wanted)}};
}

/// Fewer key/value heads than tensor ranks: Megatron-LM cuts their columns, and lets equally many
/// ranks use each head (megatron/core/transformer/attention.py).
void check_key_value_split(Rules& rules) {
  const ModelConfig& m = rules.plan_.model;
  const int64_t tensor = rules.plan_.parallelism.tensor, groups = m.num_query_groups;
  const std::string where =
      fmt::format("model.num_query_groups = {}, parallelism.tensor = {}", groups, tensor);
  const bool shared = tensor % groups == 0 && groups < tensor;
  rules.require(groups % tensor == 0 || shared,
                "key/value heads and the tensor parallel size do not divide each other",
                where,
                "use another tensor parallel size",
                tensor_sizes(groups, tensor));
  if (!shared) return;
  rules.require(traits_of(rules.plan_.training.framework).shared_query_groups,
                "only Megatron-LM lets tensor ranks use the same key/value head",
                where + ", training.framework = " + to_string(rules.plan_.training.framework),
                "use --framework megatron-lm",
                tensor_sizes(groups, tensor));
  rules.require(2 * groups * m.kv_channels % tensor == 0,
                "the columns of keys and values do not divide by the tensor parallel size",
                where + fmt::format(", model.kv_channels = {}", m.kv_channels),
                "use another tensor parallel size",
                tensor_sizes(groups, tensor));
}

void check_model_split(Rules& rules) {
  const Plan& plan = rules.plan_;
  const ModelConfig& m = plan.model;
  const ParallelConfig& p = plan.parallelism;
  const auto splits = [&](int64_t value, const std::string& key, const std::string& what) {
    rules.require(value % p.tensor == 0,
                  what + " do not divide by the tensor parallel size",
                  fmt::format("{} = {}, parallelism.tensor = {}", key, value, p.tensor),
                  "use another tensor parallel size",
                  tensor_sizes(value, p.tensor));
  };
  splits(m.num_attention_heads, "model.num_attention_heads", "attention heads");
  splits(m.ffn_hidden_size, "model.ffn_hidden_size", "the MLP's columns");
  check_key_value_split(rules);
  rules.require(m.num_attention_heads % m.num_query_groups == 0,
                "query heads do not divide by the key/value heads",
                fmt::format("model.num_attention_heads = {}, model.num_query_groups = {}",
                            m.num_attention_heads,
                            m.num_query_groups),
                "use a number of query groups that divides the attention heads",
                {{"{} query groups",
                  "model.num_query_groups",
                  divisors_near(m.num_attention_heads, m.num_query_groups)}});
  rules.require(
      plan.padded_vocab_size() % p.tensor == 0,
      "the vocabulary does not divide by the tensor parallel size",
      fmt::format("model.vocab_size = {}, parallelism.tensor = {}", m.vocab_size, p.tensor),
      "give --make-vocab-size-divisible-by 128 to pad it as Megatron does");
  rules.require(m.position_embedding != PositionEmbedding::kRope || m.multi_latent_attention ||
                    (m.rotary_width() > 0 && m.rotary_width() % 2 == 0),
                "rotary positions need an even head width",
                fmt::format("model.kv_channels = {}, rotary_percent = {}: {} with positions",
                            m.kv_channels,
                            m.rotary_percent,
                            m.rotary_width()),
                "use an even kv_channels, and a rotary_percent that leaves an even part of it");
}

void check_batch_and_sequence(Rules& rules) {
  const Plan& plan = rules.plan_;
  const ParallelConfig& p = plan.parallelism;
  const TrainingConfig& t = plan.training;
  const int64_t per_step = t.micro_batch_size * p.data.value_or(1);
  const int64_t batch = t.global_batch_size.value_or(per_step);
  rules.require(batch % per_step == 0,
                "the global batch does not divide into micro-batches",
                fmt::format("training.global_batch_size = {}, micro_batch_size {} x data {} = {}",
                            batch,
                            t.micro_batch_size,
                            p.data.value_or(1),
                            per_step),
                batch < per_step
                    ? fmt::format("use a global batch of {}, or fewer data ranks", per_step)
                    : fmt::format("use a global batch of {} or {}",
                                  batch / per_step * per_step,
                                  (batch / per_step + 1) * per_step));
  const int64_t steps = t.gradient_accumulation_steps.value_or(batch / per_step);
  rules.require(
      batch / per_step == steps,
      "the global batch is not that of the gradient accumulation",
      fmt::format("training.global_batch_size = {}, training.gradient_accumulation_steps = {}, and "
                  "{} micro-batches of {} on {} data ranks",
                  batch,
                  steps,
                  batch / per_step,
                  t.micro_batch_size,
                  p.data.value_or(1)),
      "give one of both, and `auto` for the other, or the ranks that they mean");
  const int64_t sequence = t.sequence_length.value_or(1);
  rules.require(
      batch < std::max(kLargestBatch, kLargestBatchOfRank * p.data.value_or(1) * p.pipeline),
      "the global batch counts samples, not tokens",
      fmt::format("training.global_batch_size = {}: {} tokens in a step",
                  batch,
                  whole_with_commas(static_cast<double>(batch) * static_cast<double>(sequence))),
      fmt::format("{} tokens are {} samples of {}",
                  with_commas(batch),
                  with_commas(std::max<int64_t>(1, batch / std::max<int64_t>(1, sequence))),
                  with_commas(sequence)));
  rules.require(plan.model.position_embedding != PositionEmbedding::kLearnedAbsolute ||
                    sequence <= plan.model.max_position_embeddings,
                "the sequence is longer than the learned positions",
                fmt::format("training.sequence_length = {}, model.max_position_embeddings = {}",
                            sequence,
                            plan.model.max_position_embeddings),
                fmt::format("give --max-position-embeddings {}, or "
                            "model.overrides.max_position_embeddings in a file",
                            sequence));
  rules.require(
      p.context > 1 || !p.sequence_parallel || sequence % p.tensor == 0,
      "the sequence does not divide by the tensor parallel size",
      fmt::format("training.sequence_length = {}, parallelism.tensor = {} with sequence_parallel",
                  sequence,
                  p.tensor),
      fmt::format("use a sequence of {}", round_up(sequence, p.tensor)));
}

/// Both may be given where they say the same.
void check_length_of_training(Rules& rules) {
  const Plan& plan = rules.plan_;
  const TrainingConfig& t = plan.training;
  if (!t.steps || !t.tokens || !plan.parallelism.data.is_known()) return;
  const int64_t steps = divide_up(*t.tokens, plan.tokens_per_step());
  rules.require(*t.steps == steps,
                "the steps and the tokens of the training contradict each other",
                fmt::format("training.steps = {}, training.tokens = {} in steps of {} are {}",
                            *t.steps,
                            *t.tokens,
                            with_commas(plan.tokens_per_step()),
                            with_commas(steps)),
                "give one of the two");
}

/// parseChosenWorkspaceSize() in aten/src/ATen/cuda/CublasHandlePool.cpp takes pairs of a size in
/// KiB and a count, and falls back to its default for anything else.
void check_cublas_workspace(Rules& rules) {
  static const std::regex kPairs("(:[0-9]{1,9}:[0-9]{1,9})*");
  const std::string& workspace = rules.plan_.memory.cublas_workspace;
  constexpr std::size_t kLongest = 200;  // std::regex goes down its stack with each letter
  rules.require(workspace.size() <= kLongest && std::regex_match(workspace, kPairs),
                "cuBLAS does not accept this workspace setting",
                "memory.cublas_workspace = " + shown(workspace),
                "write :SIZE_IN_KIB:COUNT, such as :4096:8");
}

void check_flash_attention(Rules& rules) {
  const Plan& plan = rules.plan_;
  if (plan.training.attention == Attention::kUnfused) return;
  const std::string name = to_string(plan.training.attention.value());
  if (const std::optional<FlashObstacle> obstacle = find_flash_obstacle(plan)) {
    rules.require(false,
                  name + " attention " + obstacle->what,
                  fmt::format("training.attention = {}, {}", name, obstacle->where),
                  "use training.attention = unfused");
  }
}

/// As Megatron-LM's validate_args asks for (megatron/training/arguments.py): user buffers are
/// TransformerEngine's, for activations that are split by sequence.
void check_user_buffers(Rules& rules) {
  const ParallelConfig& p = rules.plan_.parallelism;
  const TrainingConfig& t = rules.plan_.training;
  if (!p.tp_comm_overlap) return;
  rules.require(
      traits_of(t.framework).transformer_engine &&
          t.transformer_impl == TransformerImpl::kTransformerEngine,
      "only TransformerEngine overlaps the tensor ranks' communication with matrix products",
      fmt::format(
          "parallelism.tp_comm_overlap, training.framework = {}, training.transformer_impl = {}",
          to_string(t.framework),
          to_string(t.transformer_impl)),
      "leave it out, or use training.framework = megatron-lm with transformer_engine");
  rules.require(p.sequence_parallel,
                "TransformerEngine's user buffers need sequence parallelism",
                "parallelism.tp_comm_overlap without parallelism.sequence_parallel",
                "add --sequence-parallel, or leave out --tp-comm-overlap");
}

void check_allocator(Rules& rules) {
  const std::string& settings = rules.plan_.memory.allocator;
  if (auto problem = find_allocator_problem(settings, rules.origin_ + ": memory.allocator")) {
    rules.broken_.push_back({std::move(*problem), {}});
  }
}

/// What a plan can ask for and Onerank cannot do yet says so here, once.
void check_built(Rules& rules) {
  const ParallelConfig& p = rules.plan_.parallelism;
  rules.require(p.pipeline_schedule == ScheduleKind::kOneForwardOneBackward ||
                    p.pipeline_schedule == ScheduleKind::kGpipe,
                "schedules that split the backward cannot be run yet",
                fmt::format("parallelism.pipeline_schedule = {}", to_string(p.pipeline_schedule)),
                "use 1f1b, with virtual_stages for less bubble");
}

/// The other frameworks have an RMSNorm of their own.
void check_norm(Rules& rules) {
  const TrainingConfig& t = rules.plan_.training;
  if (t.rms_norm_fusion) return;
  rules.require(t.framework == Framework::kTorchtitan || t.framework == Framework::kPlain,
                "whose RMSNorm is not PyTorch's",
                fmt::format("training.rms_norm_fusion = false, training.framework = {}",
                            to_string(t.framework)),
                "leave it out, or use --framework torchtitan or plain");
}

/// What FSDP2 is built for here: TorchTitan's use of it, without a pipeline.
void check_fully_sharded(Rules& rules) {
  const Plan& plan = rules.plan_;
  const ParallelConfig& p = plan.parallelism;
  rules.require(p.zero_stage >= 0 && p.zero_stage <= 3,
                "there is no such ZeRO stage",
                fmt::format("parallelism.zero_stage = {}", p.zero_stage),
                "use 0, 1 (the distributed optimizer), 2 or 3 (FSDP2, or DeepSpeed's)");
  if (!plan.fully_sharded() || p.zero_stage > 3) return;
  const auto require =
      [&](bool holds, const std::string& what, const std::string& where, const std::string& help) {
        rules.require(
            holds, fmt::format("ZeRO stage {} is FSDP2 here, {}", p.zero_stage, what), where, help);
      };
  const Framework framework = plan.training.framework;
  require(traits_of(framework).fully_sharded,
          "which the framework does not have",
          fmt::format("parallelism.zero_stage = {}, training.framework = {}",
                      p.zero_stage,
                      to_string(framework)),
          "use --framework torchtitan, transformers, plain or deepspeed, or ZeRO stage 1");
  require(p.pipeline == 1,
          "which is not supported with a pipeline yet",
          fmt::format("parallelism.pipeline = {}", p.pipeline),
          "use one stage, or ZeRO stage 1");
  require(plan.training.dtype != Dtype::kFp16,
          "which has no loss scaling",
          "training.dtype = fp16",
          "use bf16");
  // _chunk_cat_cuda() of PyTorch 2.11 has the ranks in the second dimension of its grid, of which
  // CUDA allows 65,535 (aten/src/ATen/native/cuda/TensorShape.cu).
  constexpr int64_t kMostRanks = 65'535;
  const int64_t ranks = p.data.value_or(1);
  require(ranks <= kMostRanks,
          "whose reduce-scatter PyTorch prepares with a kernel for at most 65,535 ranks",
          fmt::format("parallelism.data = {}", ranks),
          "use fewer data ranks, for example with a tensor size");
}

}  // namespace

std::vector<BrokenRule> numbers_out_of_range(const Plan& plan, const PlanContext& context) {
  Rules rules(plan, context);
  if (context.world_size) {
    rules.in_range(1, kLargestWorld, *context.world_size, context.world_size_origin);
  }
  check_model_ranges(rules);
  if (rules.broken_.empty()) check_model_size(rules);
  check_headroom(rules);
  return rules.broken_;
}

std::vector<BrokenRule> broken_cluster_rules(const ClusterConfig& cluster) {
  const Plan plan{.cluster = cluster};
  Rules rules(plan, {});
  check_cluster_alone(rules);
  return rules.broken_;
}

std::vector<BrokenRule> broken_rules(const Plan& plan, const PlanContext& context) {
  Rules rules(plan, context);
  check_cluster(rules, context);
  check_model_split(rules);
  check_pipeline(rules);
  check_context(rules);
  check_experts(rules);
  check_latent_attention(rules);
  check_batch_and_sequence(rules);
  check_length_of_training(rules);
  check_flash_attention(rules);
  check_allocator(rules);
  check_cublas_workspace(rules);
  check_megatron_keys(rules);
  check_user_buffers(rules);
  check_eight_bits(rules);
  check_determinism(rules);
  check_optimizer(rules);
  check_recompute(rules);
  check_layers(rules);
  check_trainer(rules);
  check_built(rules);
  check_norm(rules);
  check_fully_sharded(rules);
  check_deepspeed(rules);
  check_optimizer_offload(rules);
  return rules.broken_;
}

}  // namespace estimator
