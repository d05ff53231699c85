#include "estimator/resolve/subject_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "estimator/base/units.h"

namespace estimator {
namespace {

/// The layers of each piece, for the command line; the pieces that have one layer less are at both
/// ends: the first stages hold the most micro-batches, and the last one has the head.
std::string nearly_even(int64_t layers, int64_t pieces) {
  const int64_t larger = layers % pieces;
  std::vector<int64_t> split(static_cast<std::size_t>(pieces), layers / pieces);
  const auto first = split.begin() + (pieces - larger + 1) / 2;
  std::for_each(first, first + larger, [](int64_t& piece) { ++piece; });
  return fmt::format("--num-layers-per-stage {}", fmt::join(split, ","));
}

void check_even_layers(Rules& rules) {
  const int64_t layers = rules.plan().model.num_layers;
  const ParallelConfig& p = rules.plan().parallelism;
  const int64_t pieces = p.pipeline * p.virtual_stages;
  if (layers % pieces == 0) return;
  const std::string uneven = layers > pieces ? ", or " + nearly_even(layers, pieces) : "";
  const bool is_plain = p.virtual_stages == 1;
  const std::string key = is_plain ? "parallelism.pipeline" : "parallelism.virtual_stages";
  const std::string stages = is_plain ? "" : fmt::format(", {} = {}", key, p.virtual_stages);
  const int64_t of_a_stage = layers % p.pipeline == 0 ? layers / p.pipeline : 1;
  rules.require(
      false,
      fmt::format("{} stages do not split the layers evenly", is_plain ? "pipeline" : "virtual"),
      fmt::format("parallelism.pipeline = {}{}, model num_layers = {}", p.pipeline, stages, layers),
      fmt::format("use fewer {}stages{}", is_plain ? "" : "virtual ", uneven),
      {{(is_plain ? "a pipeline size of {}" : "{} virtual stages") + uneven,
        key,
        is_plain ? divisors_near(layers, pieces) : divisors_near(of_a_stage, p.virtual_stages)}});
}

void check_given_layers(Rules& rules) {
  const int64_t layers = rules.plan().model.num_layers;
  const ParallelConfig& p = rules.plan().parallelism;
  const std::vector<int64_t>& given = p.layers_per_stage;
  const auto count = static_cast<int64_t>(given.size());
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  const bool none_negative =
      std::all_of(given.begin(), given.end(), [](int64_t each) { return each >= 0; });
  const int64_t pieces = p.pipeline * p.virtual_stages;
  const std::string shown =
      fmt::format("parallelism.layers_per_stage = [{}]: {} stages, {} layers; ",
                  fmt::join(given, ", "),
                  count,
                  sum);
  rules.require(
      (count == p.pipeline || count == pieces) && sum == layers && none_negative,
      "layers_per_stage does not describe the pipeline",
      shown + fmt::format("parallelism.pipeline = {}{}, model num_layers = {}",
                          p.pipeline,
                          p.virtual_stages == 1
                              ? ""
                              : fmt::format(", parallelism.virtual_stages = {}", p.virtual_stages),
                          layers),
      p.virtual_stages == 1
          ? "give one number for each stage that add up to the layers"
          : fmt::format("give {} numbers (a stage each) or {} (a virtual stage each, in model "
                        "order) that add up to the layers",
                        p.pipeline,
                        pieces));
  if (count != p.pipeline || count == pieces) return;
  rules.require(
      std::all_of(
          given.begin(), given.end(), [&](int64_t each) { return each % p.virtual_stages == 0; }),
      "the layers of a stage do not divide into its virtual stages",
      shown + fmt::format("parallelism.virtual_stages = {}", p.virtual_stages),
      fmt::format("give {} numbers: one for each virtual stage, in model order", pieces));
}

/// Of `step`, from the one at or above `value` on.
std::vector<int64_t> multiples_near(int64_t step, int64_t value) {
  const int64_t first = round_up(std::max(step, value), step);
  return {first, first + step, first + 2 * step};
}

/// Megatron-LM's conditions (training/arguments.py; core/pipeline_parallel/schedules.py,
/// forward_backward_pipelining_with_interleaving).
void check_interleaving(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const std::string where = fmt::format("parallelism.virtual_stages = {}, ", p.virtual_stages);
  rules.require(
      p.pipeline_schedule == ScheduleKind::kOneForwardOneBackward,
      "only 1f1b interleaves virtual stages",
      where + fmt::format("parallelism.pipeline_schedule = {}", to_string(p.pipeline_schedule)),
      "use pipeline_schedule 1f1b, or virtual_stages 1");
  const int64_t least_stages = p.overlap_p2p_communication ? 2 : 3;
  rules.require(p.pipeline >= least_stages,
                fmt::format("virtual stages need at least {} pipeline stages", least_stages),
                where + fmt::format("parallelism.pipeline = {}, overlap_p2p_communication = {}",
                                    p.pipeline,
                                    p.overlap_p2p_communication),
                p.pipeline == 2 ? "leave overlap_p2p_communication on, or use virtual_stages 1"
                                : "use virtual_stages 1");
}

/// Of Megatron-LM's groups.
void check_groups(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  if (!p.data.is_known())
    return;  // the world does not fit the degrees, which is a problem of its own
  if (plan.global_batch_size() % (plan.training.micro_batch_size * p.data) != 0) return;  // too
  const int64_t micro_batches = plan.micro_batches();
  const int64_t group = p.microbatch_group_size_per_virtual_stage.value_or(p.pipeline);
  const int64_t last_group = micro_batches % std::max<int64_t>(1, group);
  rules.require(
      group >= p.pipeline && group <= micro_batches &&
          (last_group == 0 || last_group >= p.pipeline),
      "the micro-batches do not divide into groups for the virtual stages",
      fmt::format("{} micro-batches (global batch {} / micro-batch {} / data {}) in groups of {}, "
                  "parallelism.pipeline = {}",
                  micro_batches,
                  plan.global_batch_size(),
                  plan.training.micro_batch_size,
                  p.data,
                  group,
                  p.pipeline),
      fmt::format("use a multiple of {} micro-batches, or a group size (parallelism."
                  "microbatch_group_size_per_virtual_stage) from {} to the micro-batches that "
                  "leaves no rest, or a rest of at least {}",
                  group,
                  p.pipeline,
                  p.pipeline),
      {{"a global batch (--gbs) of {}",
        "training.global_batch_size",
        multiples_near(group * plan.training.micro_batch_size * p.data,
                       plan.global_batch_size())}});
}

/// The conditions of torch.distributed.pipelining (Schedule1F1B and ScheduleInterleaved1F1B in
/// schedules.py of torch 2.11).
void check_torch_schedule(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  if (!p.data.is_known()) return;  // the world does not fit the degrees
  const int64_t samples = plan.training.micro_batch_size * p.data;
  if (plan.global_batch_size() % samples != 0) return;  // a problem of its own
  const int64_t micro_batches = plan.micro_batches();
  const auto require = [&](bool holds, const std::string& what) {
    rules.require(holds,
                  what,
                  fmt::format("{} micro-batches, parallelism.pipeline = {}, virtual_stages = {}",
                              micro_batches,
                              p.pipeline,
                              p.virtual_stages),
                  "use a multiple of the stages",
                  {{"a global batch (--gbs) of {}",
                    "training.global_batch_size",
                    multiples_near(p.pipeline * samples, plan.global_batch_size())}});
  };
  const bool is_gpipe = p.pipeline_schedule == ScheduleKind::kGpipe;
  require(is_gpipe || micro_batches >= p.pipeline,
          "PyTorch's 1f1b needs at least as many micro-batches as stages");
  if (p.virtual_stages == 1 || micro_batches < p.pipeline) return;
  require(
      micro_batches % (micro_batches / p.pipeline) == 0,
      "PyTorch's interleaved schedule wants rounds of equally many micro-batches, as many rounds "
      "as the micro-batches have stages in them");
}

/// What TorchTitan cannot divide into stages.
void check_torch_stages(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  rules.require(!plan.model.tie_embeddings,
                "TorchTitan does not divide a model with tied embeddings into stages",
                fmt::format("model.tie_embeddings, parallelism.pipeline = {}", p.pipeline),
                "use one stage, or --untie-embeddings-and-output-weights");
  rules.require(!p.microbatch_group_size_per_virtual_stage.has_value(),
                "PyTorch's interleaved schedule chooses the size of its rounds by itself",
                "parallelism.microbatch_group_size_per_virtual_stage, "
                "training.framework = torchtitan",
                "leave it out");
  check_torch_schedule(rules);
}

/// What Megatron-LM moves into the warm-up and the flush of a pipeline, with its own conditions
/// (__post_init__ of core/model_parallel_config.py).
void check_flush(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const std::string framework = "training.framework = " + to_string(plan.training.framework);
  if (p.overlap_p2p_warmup_flush) {
    const std::string key = "parallelism.overlap_p2p_warmup_flush, ";
    rules.require(plan.training.framework == Framework::kMegatronLm,
                  "only Megatron-LM overlaps messages in the flush of its pipeline by choice",
                  key + framework,
                  "leave it out, or use --framework megatron-lm");
    rules.require(p.virtual_stages > 1 && p.overlap_p2p_communication,
                  "messages overlap in the flush only where they do between virtual stages",
                  key + fmt::format("virtual_stages = {}, overlap_p2p_communication = {}",
                                    p.virtual_stages,
                                    p.overlap_p2p_communication),
                  "use virtual stages (--vpp) with overlap_p2p_communication, or leave it out");
  }
  if (!p.defer_embedding_wgrad_compute) {
    rules.require(p.wgrad_deferral_limit == 0,
                  "there are no deferred weight gradients to limit",
                  fmt::format("parallelism.wgrad_deferral_limit = {}", p.wgrad_deferral_limit),
                  "add --defer-embedding-wgrad-compute, or leave it out");
    return;
  }
  const std::string key = "parallelism.defer_embedding_wgrad_compute, ";
  rules.require(plan.training.framework == Framework::kMegatronLm &&
                    plan.training.gradient_accumulation_fusion,
                "only fused products of Megatron-LM can add weight gradients later",
                key + framework +
                    fmt::format(", gradient_accumulation_fusion = {}",
                                plan.training.gradient_accumulation_fusion),
                "use --framework megatron-lm with gradient accumulation fusion, or leave it out");
  rules.require(p.pipeline > 1,
                "without a pipeline there is no flush in which to compute weight gradients",
                key + fmt::format("pipeline = {}", p.pipeline),
                "use several stages (--pp), or leave it out");
}

}  // namespace

void check_pipeline(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  check_flush(rules);
  p.layers_per_stage.empty() ? check_even_layers(rules) : check_given_layers(rules);
  if (p.virtual_stages > 1) check_interleaving(rules);
  if (rules.plan().torch_pipeline()) {
    check_torch_stages(rules);
  } else if (p.virtual_stages > 1) {
    check_groups(rules);
  }
}

void check_schedule(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  rules.require(p.pipeline_schedule == ScheduleKind::kOneForwardOneBackward ||
                    p.pipeline_schedule == ScheduleKind::kGpipe,
                "schedules that split the backward cannot be run yet",
                fmt::format("parallelism.pipeline_schedule = {}", to_string(p.pipeline_schedule)),
                "use 1f1b, with virtual_stages for less bubble");
}

}  // namespace estimator
