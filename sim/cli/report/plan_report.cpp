#include "sim/cli/report/plan_report.h"

#include <fmt/format.h>

#include "estimator/base/units.h"
#include "estimator/cluster/plan_notes.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/quantization.h"

namespace sim {

using estimator::to_string;
using estimator::with_commas;

std::string world_text(const PlanInput& input) {
  return fmt::format(
      "simulated world {} (from {})", input.plan.world_size(), input.world_size_origin);
}

std::string input_lines(const PlanInput& input) {
  std::string lines = input.import_lines;
  if (!input.allocator_origin.empty()) {
    lines += fmt::format(
        "allocator {} (from {})\n", input.plan.memory.allocator, input.allocator_origin);
  }
  for (const std::string& note : estimator::plan_notes(input.plan)) lines += note + "\n";
  return lines;
}

namespace {

std::string experts_line(const estimator::Plan& plan) {
  const estimator::ModelConfig& model = plan.model;
  if (!model.has_experts()) return "";
  return fmt::format(
      "{} experts in {} of {} layers, {} for a token; expert {} x expert tensor {}\n",
      model.num_experts,
      model.expert_layers(),
      model.all_layers(),
      model.moe_router_topk,
      plan.parallelism.expert,
      plan.expert_tensor_size());
}

/// Where the framework is not the usual one, and nobody asked for it.
/// ", products and weights in fp8 (hybrid, mxfp8)"; empty where all is in 16 bits.
std::string products_text(const estimator::TrainingConfig& t) {
  if (!estimator::quantizes(t)) return "";
  const char* weights = estimator::keeps_weights_quantized(t) ? " and weights" : "";
  return t.fp4_format == estimator::Fp4Format::kNone
             ? fmt::format(", products{} in fp8 ({}, {})",
                           weights,
                           to_string(t.fp8_format),
                           to_string(t.fp8_recipe))
             : fmt::format(", products{} in fp4 ({})", weights, to_string(t.fp4_recipe));
}

std::string chosen_text(const PlanInput& input) {
  const bool is_said = input.spec.says("training.framework");
  return input.plan.parallelism.divides_gradients() && !is_said ? " (chosen for FSDP2)" : "";
}

}  // namespace

std::string plan_text(const PlanInput& input) {
  const estimator::Plan& plan = input.plan;
  const estimator::ParallelConfig& p = plan.parallelism;
  const estimator::TrainingConfig& t = plan.training;
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  const std::string name = plan.name.empty() ? "plan" : plan.name;
  const std::string model = plan.model_preset.empty() ? "a model of its own" : plan.model_preset;
  return fmt::format("{}: {}, {}; {} x {} in nodes of {}\n",
                     name,
                     model,
                     world_text(input),
                     with_commas(plan.world_size()),
                     gpu == nullptr ? plan.cluster.gpu : gpu->cuda_name,
                     plan.cluster.gpus_per_node) +
         fmt::format(
             "tensor {}{}{} x pipeline {} ({}{}) x data {}, ZeRO stage {}{}; micro-batch {}, "
             "global "
             "batch {}, "
             "sequence {}\n",
             p.tensor,
             p.sequence_parallel ? " with sequence parallelism" : "",
             p.context > 1 ? fmt::format(" x context {} ({})", p.context, to_string(p.context_comm))
                           : "",
             p.pipeline,
             to_string(p.pipeline_schedule),
             p.virtual_stages > 1 ? fmt::format(", {} virtual stages each", p.virtual_stages) : "",
             plan.data_parallel_size(),
             p.zero_stage.value(),
             plan.fully_sharded() ? " (FSDP2)" : "",
             t.micro_batch_size,
             with_commas(plan.global_batch_size()),
             with_commas(plan.sequence_length())) +
         experts_line(plan) +
         fmt::format(
             "{}{}, {}, recompute {}, attention {}, framework {}{}, vocabulary {} ({} padded)\n",
             to_string(t.dtype),
             products_text(t),
             to_string(t.optimizer),
             to_string(t.recompute),
             to_string(t.attention.value()),
             to_string(t.framework),
             chosen_text(input),
             with_commas(plan.model.vocab_size),
             with_commas(plan.padded_vocab_size())) +
         input_lines(input);
}

}  // namespace sim
