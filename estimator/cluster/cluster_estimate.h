// The estimate of a whole cluster, which is written as JSON (`estimate.json`) and as text. Every
// number that is not a plain sum has its source.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/json_value.h"
#include "estimator/base/option.h"
#include "estimator/base/tagged.h"
#include "estimator/compute/board_power.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/step/step_summary.h"

namespace estimator {

inline constexpr int64_t kEstimateSchemaVersion = 1;

/// The memory that a rank needs lies in a band, since some terms are not known exactly. The rank
/// fits when the whole band is within the limit, and does not fit when no part of it is. In
/// between, the answer is open. The values ascend, so that the worst of several is the largest.
enum class Fit { kFits, kTooClose, kDoesNotFit };
constexpr std::array<EnumName<Fit>, 3> enum_names(Fit) {
  return {{{Fit::kFits, "fits"},
           {Fit::kTooClose, "too_close_to_call"},
           {Fit::kDoesNotFit, "does_not_fit"}}};
}

struct Verdict {
  Fit outcome = Fit::kDoesNotFit;
  int64_t worst_rank = 0;
  int64_t peak_bytes = 0;       ///< of the worst rank: reserved + context + communicators
  int64_t peak_low_bytes = 0;   ///< the lower end of the band that it lies in
  int64_t peak_high_bytes = 0;  ///< the upper end
  int64_t capacity_bytes = 0;   ///< as CUDA reports it
  int64_t headroom_bytes = 0;   ///< capacity - peak; negative when it does not fit
  std::string reason;

  /// Whether it fits even if every term that is not known exactly is at its upper end.
  bool fits() const { return outcome == Fit::kFits; }
};
template <class Visitor>
void visit_fields(Visitor& visit, Verdict& verdict) {
  bool fits = verdict.fits();
  visit("fits", fits, "every rank fits, also with the upper end of what it may need");
  visit("outcome", verdict.outcome, "the verdict; too_close_to_call: the band holds the limit");
  visit("worst_rank", verdict.worst_rank, "the rank that needs most");
  visit("peak_bytes", verdict.peak_bytes, "what it needs");
  visit("peak_low_bytes", verdict.peak_low_bytes, "lower end of the band of what it needs");
  visit("peak_high_bytes", verdict.peak_high_bytes, "upper end of the band of what it needs");
  visit("capacity_bytes", verdict.capacity_bytes, "what the GPU has");
  visit("headroom_bytes", verdict.headroom_bytes, "what is left");
  visit("reason", verdict.reason, "why");
}

struct RankClassEstimate {
  int64_t representative_rank = 0;
  int64_t count = 0;  ///< ranks of the cluster that are like it
  RankCoordinate coordinate;
  std::string stages;  ///< "0", "1-14"
  int64_t parameters = 0;
  int64_t allocated_peak_bytes = 0;
  int64_t reserved_peak_bytes = 0;
  int64_t context_bytes = 0;
  int64_t communicator_bytes = 0;
  int64_t total_bytes = 0;
  int64_t total_low_bytes = 0;   ///< sum of the terms' lower ends
  int64_t total_high_bytes = 0;  ///< sum of the terms' upper ends
  bool limit_lifted = false;
  std::string peak_phase;
  std::optional<CategoryBytes> peak_categories;  ///< what fills allocated_peak_bytes
  std::optional<OutOfMemoryRecord>
      out_of_memory;  ///< where it ran out, before the limit was lifted
  std::vector<MemoryTerm> terms;
  int64_t host_bytes = 0;
  double forward_seconds = 0;   ///< compute of one micro-batch
  double backward_seconds = 0;  ///< with recompute
  BoardUse board;
};
template <class Visitor>
void visit_fields(Visitor& visit, RankClassEstimate& c) {
  visit("representative_rank", c.representative_rank, "the rank that was run");
  visit("count", c.count, "ranks like it");
  visit("coordinate", c.coordinate, "its place");
  visit("stages", c.stages, "pipeline stages of the class");
  visit("parameters", c.parameters, "number of parameters in its shard");
  visit("allocated_peak_bytes", c.allocated_peak_bytes, "peak of the bytes allocated by tensors");
  visit("reserved_peak_bytes", c.reserved_peak_bytes, "taken by the allocator");
  visit("context_bytes", c.context_bytes, "CUDA context and its libraries");
  visit("communicator_bytes", c.communicator_bytes, "communicators");
  visit("total_bytes", c.total_bytes, "sum of the terms");
  visit("total_low_bytes", c.total_low_bytes, "lower end of the band of the total");
  visit("total_high_bytes", c.total_high_bytes, "upper end of the band of the total");
  visit("limit_lifted", c.limit_lifted, "it ran without the limit");
  visit("peak_phase", c.peak_phase, "where the peak was");
  visit("peak_categories", c.peak_categories, "what fills it, where memory was attributed");
  visit("out_of_memory", c.out_of_memory, "where it ran out of memory, where it did");
  visit("terms", c.terms, "the terms of the total, tagged");
  visit("host_bytes", c.host_bytes, "host memory for the optimizer");
  visit("forward_seconds", c.forward_seconds, "one micro-batch, compute and tensor communication");
  visit(
      "backward_seconds", c.backward_seconds, "one micro-batch, compute and tensor communication");
  visit("board", c.board, "what the step needs of the power of its board");
}

/// The host memory that the optimizer needs. There is no verdict for it, because the memory of the
/// machines is not known.
struct HostMemoryEstimate {
  int64_t rank_bytes = 0;
  int64_t node_bytes = 0;
  Source source = Source::kSimulated;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, HostMemoryEstimate& host) {
  visit("rank_bytes", host.rank_bytes, "host memory of the rank that needs most");
  visit("node_bytes", host.node_bytes, "host memory of the ranks of the machine that needs most");
  visit("source", host.source, "where the numbers come from");
  visit("note", host.note, "what they hold");
}

/// Parameters, gradients and optimizer state of the whole model, each once. However ranks share
/// them, the GPUs together must hold them.
struct WholeState {
  int64_t parameters = 0;  ///< how many, with the vocabulary padded
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t master_weight_bytes = 0;
  int64_t optimizer_state_bytes = 0;
  int64_t usable_bytes = 0;
  int64_t fewest_gpus = 0;
  int64_t fewest_gpus_offloaded = 0;

  int64_t bytes() const {
    return parameter_bytes + gradient_bytes + master_weight_bytes + optimizer_state_bytes;
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, WholeState& state) {
  visit("parameters", state.parameters, "of the model, with the vocabulary padded");
  visit("parameter_bytes", state.parameter_bytes, "of them");
  visit("gradient_bytes", state.gradient_bytes, "of gradient buffers");
  visit("master_weight_bytes", state.master_weight_bytes, "of fp32 master weights");
  visit("optimizer_state_bytes", state.optimizer_state_bytes, "of moments or momentum");
  visit("usable_bytes", state.usable_bytes, "that a GPU has for them");
  visit(
      "fewest_gpus", state.fewest_gpus, "that hold them; in whole machines, if one is not enough");
  visit("fewest_gpus_offloaded",
        state.fewest_gpus_offloaded,
        "the same where the hosts keep the master weights and the optimizer state");
}

struct Throughput {
  double tokens_per_second = 0;
  double tokens_per_second_per_gpu = 0;
  double model_flops_per_second_per_gpu = 0;
  double mfu = 0;
  double hfu = 0;
  double mfu_full_attention = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, Throughput& throughput) {
  visit("tokens_per_second", throughput.tokens_per_second, "of the cluster");
  visit("tokens_per_second_per_gpu", throughput.tokens_per_second_per_gpu, "of one GPU");
  visit("model_flops_per_second_per_gpu",
        throughput.model_flops_per_second_per_gpu,
        "causal attention counted half");
  visit(
      "mfu",
      throughput.mfu,
      "model FLOPs over the dense peak of the plan's dtype; Megatron-LM's count: causal attention "
      "half, padded vocabulary, no recompute");
  visit("hfu", throughput.hfu, "the same with recomputed FLOPs");
  visit("mfu_full_attention",
        throughput.mfu_full_attention,
        "PaLM's count: as mfu, with all of the attention matrix");
}

/// One measured iteration of the same job. Throughput, training and advice are then computed with
/// the measured time; the parts of the iteration stay as they were estimated.
struct MeasuredStep {
  double seconds = 0;
  double estimated_seconds = 0;
  double factor = 1;  ///< measured over estimated
};
template <class Visitor>
void visit_fields(Visitor& visit, MeasuredStep& measured) {
  visit("seconds", measured.seconds, "as the user measured it");
  visit("estimated_seconds", measured.estimated_seconds, "the same iteration, estimated");
  visit(
      "factor", measured.factor, "measured over estimated; throughput, training and advice use it");
}
/// Throws UserError when nothing was estimated with which the measured time could be compared.
MeasuredStep measured_step(double seconds, double estimated_seconds);

/// Throws UserError where the `mfu` of a measured step, over some peak, is above `most`, the GPU's
/// fastest peak over that peak: no GPU does so much, so the time or the job is another one.
void require_below_peak(const MeasuredStep& measured, double mfu, double most = 1);

struct TrainingCost {
  double cost_usd = 0;
  double usd_per_gpu_hour = 0;
  Source source = Source::kPublished;
  std::string provider;
  std::string date;
  std::string origin;
};
template <class Visitor>
void visit_fields(Visitor& visit, TrainingCost& cost) {
  visit("cost_usd", cost.cost_usd, "of all GPU hours");
  visit("usd_per_gpu_hour", cost.usd_per_gpu_hour, "at this price");
  visit("source", cost.source, "given by the plan, or published");
  visit("provider", cost.provider, "provider that asks this price");
  visit("date", cost.date, "when it was read");
  visit("origin", cost.origin, "where it was read");
}

struct LostSeconds {
  double checkpoints = 0, restarts = 0, repeated_work = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, LostSeconds& lost) {
  visit("checkpoints", lost.checkpoints, "standing still to save");
  visit("restarts", lost.restarts, "from failures to training again");
  visit("repeated_work", lost.repeated_work, "repeating the work that failures undid");
}

struct TrainingEstimate {
  int64_t steps = 0;
  double seconds = 0;
  double seconds_without_failures = 0;
  double goodput = 1;
  double gpu_hours = 0;
  std::optional<double> cost_usd;
  std::vector<TrainingCost> costs;
  double failures = 0;
  double seconds_between_failures = 0;
  TaggedNumber gpu_hours_between_failures, restart_seconds, checkpoint_seconds;
  int64_t save_interval = 1;
  Source save_interval_source = Source::kComputed;
  LostSeconds lost_seconds;
};
template <class Visitor>
void visit_fields(Visitor& visit, TrainingEstimate& training) {
  visit("steps", training.steps, "optimizer steps");
  visit("seconds", training.seconds, "expected wall time, with failures and checkpoints");
  visit("seconds_without_failures", training.seconds_without_failures, "steps x iteration");
  visit("goodput", training.goodput, "share of the wall time that trains");
  visit("gpu_hours", training.gpu_hours, "world size x expected hours");
  visit("cost_usd", training.cost_usd, "where the plan has a price");
  visit("costs", training.costs, "at the plan's price, or at published ones, cheapest first");
  visit("failures", training.failures, "expected number");
  visit("seconds_between_failures", training.seconds_between_failures, "of the whole job, mean");
  visit("gpu_hours_between_failures",
        training.gpu_hours_between_failures,
        "mean time between failures of the job x number of its GPUs, in hours");
  visit("restart_seconds", training.restart_seconds, "from a failure to training again");
  visit("checkpoint_seconds", training.checkpoint_seconds, "standing still for one");
  visit("save_interval", training.save_interval, "steps between checkpoints");
  visit("save_interval_source",
        training.save_interval_source,
        "given by the plan, or computed: Daly's best");
  visit("lost_seconds", training.lost_seconds, "where the rest of the wall time goes");
}

/// How much a change is worth: critical makes the plan fit at no cost of time, or nearly; high
/// makes it fit, or saves much time; medium nearly makes it fit, or saves some time or much memory.
enum class Priority { kCritical, kHigh, kMedium, kLow };
constexpr std::array<EnumName<Priority>, 4> enum_names(Priority) {
  return {{{Priority::kCritical, "critical"},
           {Priority::kHigh, "high"},
           {Priority::kMedium, "medium"},
           {Priority::kLow, "low"}}};
}

struct Advice {
  Priority priority = Priority::kLow;
  std::string text;
  std::string flags;
  PlanEdits edits;  ///< what the flags write; not in documents
  std::optional<int64_t> gain_bytes;
  std::optional<double> gain_seconds;
};
template <class Visitor>
void visit_fields(Visitor& visit, Advice& advice) {
  visit("priority", advice.priority, "how much it is worth");
  visit("text", advice.text, "what to change");
  visit("flags", advice.flags, "what to type for it, over what was given");
  visit("gain_bytes",
        advice.gain_bytes,
        "bytes that the worst rank saves, from a run of the changed plan");
  visit("gain_seconds",
        advice.gain_seconds,
        "seconds that an iteration saves, from a run of the changed plan");
}

/// What the kernels of the worst rank compute and move in one step, and what the rank holds
/// meanwhile.
struct RankStep {
  int64_t rank = 0;
  double flops = 0;
  double moved_bytes = 0;  ///< inputs read and outputs written by each kernel, without caches
  double flops_per_byte = 0;
  double flops_per_second = 0;
  double moved_bytes_per_second = 0;
  double peak_bytes_per_token = 0;
  std::optional<int64_t> mean_allocated_bytes;
};
template <class Visitor>
void visit_fields(Visitor& visit, RankStep& step) {
  visit("rank", step.rank, "the worst rank");
  visit("flops", step.flops, "of its matrix products and attention");
  visit("moved_bytes", step.moved_bytes, "inputs and outputs of its kernels");
  visit("flops_per_byte", step.flops_per_byte, "arithmetic intensity of the whole step");
  visit("flops_per_second", step.flops_per_second, "over the whole iteration, waiting included");
  visit("moved_bytes_per_second", step.moved_bytes_per_second, "the same of the bytes");
  visit("peak_bytes_per_token",
        step.peak_bytes_per_token,
        "its allocated peak over the tokens of a micro-batch");
  visit("mean_allocated_bytes",
        step.mean_allocated_bytes,
        "over the time of the step, where it was followed");
}

/// One closed formula of the literature, beside what was executed.
struct TextbookTerm {
  std::string name;
  std::string formula;  ///< "2 x P / (t p)"
  int64_t bytes = 0;    ///< by the formula
  std::optional<int64_t> executed_bytes;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, TextbookTerm& term) {
  visit("name", term.name, "what it is");
  visit("formula", term.formula, "in the letters of the papers");
  visit("bytes", term.bytes, "by the formula");
  visit("executed_bytes", term.executed_bytes, "where the same was executed and counted");
  visit("source", term.source, "where the formula is from; empty for a sum of terms above it");
}

struct ClusterEstimate {
  DocumentHead head{kEstimateSchemaVersion, "cluster_estimate"};
  ToolVersion tool;
  JsonValue plan;
  Verdict verdict;
  std::vector<RankClassEstimate> rank_classes;
  std::optional<WholeState> whole_state;
  std::optional<HostMemoryEstimate> host_memory;
  StepTime time;
  std::optional<MeasuredStep> measured_step;
  Throughput throughput;
  std::optional<RankStep> worst_rank_step;
  std::optional<TrainingEstimate> training;
  std::vector<Advice> advice;
  std::vector<TextbookTerm> textbook;  ///< of the worst rank, where it is asked for
  std::vector<RateTerm> rates;
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;

  /// Whether the state of the model alone is more than these GPUs hold: no layout of them fits,
  /// unless its optimizer is offloaded.
  bool lacks_gpus(int64_t world_size) const {
    return whole_state && !verdict.fits() && whole_state->fewest_gpus > world_size;
  }
  /// The same of a model whose optimizer may be offloaded.
  bool lacks_gpus_offloaded(int64_t world_size) const {
    return lacks_gpus(world_size) && whole_state->fewest_gpus_offloaded > world_size;
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, ClusterEstimate& estimate) {
  visit_head(visit, estimate.head);
  visit("tool", estimate.tool, "who wrote it");
  visit("plan", estimate.plan, "the resolved plan");
  visit("verdict", estimate.verdict, "fits or not, and why");
  visit("rank_classes", estimate.rank_classes, "one row for each class of equal ranks");
  visit("whole_state", estimate.whole_state, "of the model, counted in the ranks that were run");
  visit("host_memory", estimate.host_memory, "of the machines, where the optimizer is offloaded");
  visit("time", estimate.time, "of one iteration");
  visit("measured_step", estimate.measured_step, "where the user gives one");
  visit("throughput", estimate.throughput, "of the cluster");
  visit("worst_rank_step", estimate.worst_rank_step, "its kernels and memory over one step");
  visit("training", estimate.training, "of the whole training, where the plan says how long");
  visit("advice", estimate.advice, "what would help");
  visit("textbook",
        estimate.textbook,
        "closed formulas beside what the worst rank executed; with --formulas");
  visit("rates", estimate.rates, "how fast the GPU was taken to be");
  visit("assumptions", estimate.assumptions, "numbers that were assumed");
  visit("not_modelled", estimate.not_modelled, "what the estimate leaves out");
}

}  // namespace estimator
