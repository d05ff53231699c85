#include "estimator/cluster/plan_notes.h"

#include <fmt/format.h>

#include "estimator/base/units.h"
#include "estimator/cluster/textbook.h"
#include "estimator/compute/model_flops.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/resolve/sized_model.h"

namespace estimator {
namespace {

void note_size(std::vector<std::string>& notes, const Plan& plan) {
  if (!sized_model(plan.model_preset)) return;
  notes.push_back(
      fmt::format("assumed: {} is only a size, and is taken as Llama's architecture of {}",
                  plan.model_preset,
                  shape_words(plan.model)));
}

void note_balancing(std::vector<std::string>& notes, const Plan& plan) {
  const ModelPreset* preset = find_model_preset(plan.model_preset);
  const bool is_left_out = preset != nullptr && preset->config.moe_aux_loss_coeff > 0 &&
                           traits_of(plan.training.framework).stacked_experts;
  if (!is_left_out) return;
  notes.push_back(
      fmt::format("left out: the loss that balances the experts of {}, which {} does not have",
                  plan.model_preset,
                  to_string(plan.training.framework.value())));
}

/// DistributedOptimizer.__init__ of megatron/core/optimizer/distrib_optimizer.py asserts it.
void note_sharded_sgd(std::vector<std::string>& notes, const Plan& plan) {
  const bool is_megatrons =
      plan.training.framework == Framework::kMegatronLm && plan.parallelism.zero_stage == 1;
  if (!is_megatrons || plan.training.optimizer != Optimizer::kSgd) return;
  notes.push_back("warning: Megatron-LM's distributed optimizer stops at SGD");
}

void note_positions(std::vector<std::string>& notes, const Plan& plan) {
  if (plan.sequence_length() <= plan.model.max_position_embeddings) return;
  notes.push_back(fmt::format("warning: the sequence of {} is longer than the model's {} positions",
                              with_commas(plan.sequence_length()),
                              with_commas(plan.model.max_position_embeddings)));
}

/// Megatron-LM takes the modules, too, and recomputes nothing.
void note_modules(std::vector<std::string>& notes, const Plan& plan) {
  const TrainingConfig& t = plan.training;
  if (t.recompute_modules.empty() || t.recompute == Recompute::kSelective) return;
  notes.push_back(
      fmt::format("warning: recompute_modules has no effect with recompute {}: "
                  "--recompute-granularity selective recomputes them",
                  to_string(t.recompute)));
}

/// The reductions that are left begin before finish_embedding_wgrad_compute()
/// (megatron/core/pipeline_parallel/schedules.py @d98e8a6).
void note_deferral(std::vector<std::string>& notes, const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  if (!p.defer_embedding_wgrad_compute || !p.overlap_grad_reduce || plan.replicas() == 1) return;
  notes.push_back(
      "warning: with --overlap-grad-reduce Megatron-LM begins to reduce the output layer's "
      "gradient before --defer-embedding-wgrad-compute has made it whole; the estimate keeps this "
      "order");
}

void note_emptied_cache(std::vector<std::string>& notes, const Plan& plan) {
  if (plan.training.empty_unused_memory_level == 0) return;
  notes.push_back(
      "assumed: the calls of cudaFree and cudaMalloc that --empty-unused-memory-level makes in "
      "each iteration take no time");
}

void note_dispatcher(std::vector<std::string>& notes, const Plan& plan) {
  const TrainingConfig& t = plan.training;
  if (!plan.model.has_experts() || t.moe_token_dispatcher_type != TokenDispatcher::kFlex) return;
  notes.push_back(
      fmt::format("assumed: the experts of a token are drawn uniformly, and calls of {} take as "
                  "long as was published, in proportion to the rates of the links",
                  to_string(t.moe_flex_dispatcher_backend)));
}

void note_graphs(std::vector<std::string>& notes, const Plan& plan) {
  if (plan.training.cuda_graph_impl == CudaGraphImpl::kNone) return;
  notes.push_back(
      "assumed: the pool of the CUDA graphs holds as much as their kernels hold one by one");
}

/// Bytes that stay of a score: its probability in 16 bits; with dropout its mask and its output,
/// too.
int64_t kept_of_score(const Plan& plan) { return plan.model.attention_dropout > 0 ? 5 : 2; }

void note_scores(std::vector<std::string>& notes, const Plan& plan) {
  const int64_t scores_of_width =
      kept_of_score(plan) * plan.model.num_attention_heads * plan.sequence_length();
  if (!keeps_scores(plan) || scores_of_width <= 34 * plan.model.hidden_size) return;
  notes.push_back(fmt::format(
      "warning: unfused attention keeps about {} of scores in each layer, more than all else that "
      "it keeps, and they grow with the square of the sequence: --attention-backend flash keeps "
      "none",
      format_gib(static_cast<int64_t>(score_count(plan)) * kept_of_score(plan))));
}

void note_attention_flops(std::vector<std::string>& notes, const Plan& plan) {
  const StepFlops flops = step_flops(plan);
  const double share = (flops.model_full_attention - flops.model) / flops.model;
  if (share <= 0.5) return;
  notes.push_back(
      fmt::format("warning: attention has {:.0f} % of the model's FLOPs at this sequence, and its "
                  "time grows with the square of it",
                  100 * share));
}

}  // namespace

std::string machine_beyond_nvlink(const ClusterConfig& cluster) {
  const Gpu* gpu = find_gpu(cluster.gpu);
  const Link* inside = cluster.intra_link.is_known() ? find_link(cluster.intra_link) : nullptr;
  if (gpu == nullptr || inside == nullptr || inside->kind != "nvlink" ||
      cluster.gpus_per_node <= gpu->nvlink_domain_gpus) {
    return "";
  }
  return fmt::format(
      "the {} GPUs of a machine all reach each other over {}, which joins {} of {}",
      cluster.gpus_per_node.value(),
      inside->id,
      gpu->nvlink_domain_gpus == 1 ? "none" : std::to_string(gpu->nvlink_domain_gpus),
      gpu->id);
}

std::vector<std::string> plan_notes(const Plan& plan) {
  std::vector<std::string> notes;
  if (const std::string note = machine_beyond_nvlink(plan.cluster); !note.empty()) {
    notes.push_back("warning: it is assumed that " + note +
                    ": --gpus-per-node and --intra-link say what a machine has");
  }
  note_size(notes, plan);
  note_balancing(notes, plan);
  note_sharded_sgd(notes, plan);
  note_positions(notes, plan);
  note_modules(notes, plan);
  note_scores(notes, plan);
  note_attention_flops(notes, plan);
  note_deferral(notes, plan);
  note_emptied_cache(notes, plan);
  note_dispatcher(notes, plan);
  note_graphs(notes, plan);
  return notes;
}

}  // namespace estimator
