#include "estimator/plan/plan_changes.h"

#include <fmt/format.h>

namespace estimator {
namespace {

constexpr const char* kExpandable = "expandable_segments";

/// One kind of change: what it is called, and how it is made; empty where the plan has it already.
struct Kind {
  std::string (*text)(const Plan& plan);
  void (*change)(const Plan& plan, Json& tree);
};

/// Doubles an axis at the cost of data parallelism.
Json& split_further(const Plan& plan, Json& tree, const char* axis, int64_t size) {
  Json& parallelism = tree["parallelism"];
  parallelism[axis] = 2 * size;
  parallelism["data"] = plan.data_parallel_size() / 2;
  return parallelism;
}

/// How that is called; empty where there is no half of the data ranks.
std::string split_text(const Plan& plan, const char* axis, int64_t size) {
  const int64_t data = plan.data_parallel_size();
  return data % 2 == 0 ? fmt::format("{} {} (data {})", axis, 2 * size, data / 2) : "";
}

/// Of models that tensor ranks share under sequence parallelism alone.
bool lacks_sequence_parallelism(const Plan& plan) {
  const bool needed = plan.model.multi_latent_attention || plan.model.has_experts();
  return needed && !plan.parallelism.sequence_parallel;
}

std::vector<Kind> kinds() {
  return {
      {[](const Plan& plan) -> std::string {
         const bool has = plan.memory.allocator.find(kExpandable) != std::string::npos;
         return has ? "" : "expandable segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)";
       },
       [](const Plan& plan, Json& tree) {
         const std::string before =
             plan.memory.allocator.empty() ? "" : plan.memory.allocator + ",";
         tree["memory"]["allocator"] = before + kExpandable + ":True";
       }},
      {[](const Plan& plan) -> std::string {
         const ParallelConfig& p = plan.parallelism;
         return p.tensor > 1 && !p.sequence_parallel ? "sequence parallelism" : "";
       },
       [](const Plan&, Json& tree) { tree["parallelism"]["sequence_parallel"] = true; }},
      {[](const Plan& plan) -> std::string {
         const bool can = plan.replicas() > 1 && plan.parallelism.zero_stage < 3;
         return can ? fmt::format("ZeRO stage {}", plan.parallelism.zero_stage + 1) : "";
       },
       [](const Plan& plan, Json& tree) {
         tree["parallelism"]["zero_stage"] = plan.parallelism.zero_stage + 1;
       }},
      {[](const Plan& plan) -> std::string {
         const TrainingConfig& t = plan.training;
         const int64_t zero_stage = plan.parallelism.zero_stage;
         if (t.optimizer_cpu_offload || zero_stage > 1) return "";
         return fmt::format("optimizer offload ({}{})",
                            zero_stage == 0 ? "--use-distributed-optimizer " : "",
                            "--optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d");
       },
       [](const Plan&, Json& tree) {
         tree["parallelism"]["zero_stage"] = 1;
         tree["training"]["optimizer_cpu_offload"] = true;
         tree["training"]["overlap_cpu_optimizer_d2h_h2d"] = true;
       }},
      {[](const Plan& plan) -> std::string {
         const TrainingConfig& t = plan.training;
         const bool helps = t.recompute == Recompute::kNone && t.attention == Attention::kUnfused;
         return helps ? "selective recompute" : "";
       },
       [](const Plan&, Json& tree) { tree["training"]["recompute"] = "selective"; }},
      {[](const Plan& plan) -> std::string {
         const int64_t size = plan.training.micro_batch_size;
         return size % 2 == 0 ? fmt::format("micro-batch {}", size / 2) : "";
       },
       [](const Plan& plan, Json& tree) {
         tree["training"]["micro_batch_size"] = plan.training.micro_batch_size / 2;
       }},
      {[](const Plan& plan) -> std::string {
         return plan.training.recompute != Recompute::kFull ? "full recompute" : "";
       },
       [](const Plan&, Json& tree) { tree["training"]["recompute"] = "full"; }},
      {[](const Plan& plan) -> std::string {
         const int64_t tensor = plan.parallelism.tensor;
         if (2 * tensor > *plan.cluster.gpus_per_node) return "";
         const std::string text = split_text(plan, "tensor", tensor);
         const bool more = !text.empty() && lacks_sequence_parallelism(plan);
         return more ? text + " and sequence parallelism" : text;
       },
       [](const Plan& plan, Json& tree) {
         Json& parallelism = split_further(plan, tree, "tensor", plan.parallelism.tensor);
         if (lacks_sequence_parallelism(plan)) parallelism["sequence_parallel"] = true;
       }},
      {[](const Plan& plan) -> std::string {
         return plan.model.has_experts() ? fmt::format("expert {}", 2 * plan.parallelism.expert)
                                         : "";
       },
       [](const Plan& plan, Json& tree) {
         tree["parallelism"]["expert"] = 2 * plan.parallelism.expert;
       }},
      {[](const Plan& plan) { return split_text(plan, "context", plan.parallelism.context); },
       [](const Plan& plan, Json& tree) {
         split_further(plan, tree, "context", plan.parallelism.context);
       }},
      {[](const Plan& plan) { return split_text(plan, "pipeline", plan.parallelism.pipeline); },
       [](const Plan& plan, Json& tree) {
         Json& parallelism = split_further(plan, tree, "pipeline", plan.parallelism.pipeline);
         parallelism["layers_per_stage"] = Json::array();
       }},
  };
}

}  // namespace

std::vector<PlanChange> memory_saving_changes(const Plan& plan) {
  std::vector<PlanChange> changes;
  for (const Kind& kind : kinds()) {
    const std::string text = kind.text(plan);
    if (text.empty()) continue;
    Json tree = to_json(plan);
    kind.change(plan, tree);
    try {
      changes.push_back({text, resolve_plan(tree, {.origin = "advice"})});
    } catch (const UserError&) {
      continue;  // the rules do not allow it here
    }
  }
  return changes;
}

}  // namespace estimator
