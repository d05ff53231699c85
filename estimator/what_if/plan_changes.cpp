#include "estimator/what_if/plan_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "estimator/base/fields.h"
#include "estimator/plan/attention_choice.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/option_paths.h"

namespace estimator {
namespace {

constexpr const char* kExpandable = "expandable_segments";

/// What a change starts from.
struct Start {
  const PlanSpec& spec;
  const Plan& plan;
};

/// A way to make a change, which the rules may refuse.
struct Proposal {
  std::string text;
  PlanEdits edits;
};

/// The ways to make one step: the first that the rules allow counts.
using Ways = std::vector<Proposal>;
using Steps = std::vector<Ways>;

/// A kind of change: its steps, none where the plan has it already.
using Kind = Steps (*)(const Start&);

Steps expandable_segments(const Start& from) {
  const std::string& before = from.plan.memory.allocator;
  if (before.find(kExpandable) != std::string::npos) return {};
  const std::string settings = before + (before.empty() ? "" : ",") + kExpandable + ":True";
  return {{{"expandable segments", {{paths::kAllocator, settings}}}}};
}

Steps flash_attention(const Start& from) {
  const bool can =
      from.plan.training.attention == Attention::kUnfused && !find_flash_obstacle(from.plan);
  if (!can) return {};
  return {{{"flash attention", {{paths::kAttention, to_string(Attention::kFlash)}}}}};
}

Steps sixteen_bits(const Start& from) {
  if (from.plan.training.dtype != Dtype::kFp32) return {};
  return {{{"bf16", {{paths::kDtype, to_string(Dtype::kBf16)}}},
           {"fp16", {{paths::kDtype, to_string(Dtype::kFp16)}}}}};
}

Steps sequence_parallelism(const Start& from) {
  const ParallelConfig& p = from.plan.parallelism;
  if (p.tensor == 1 || p.sequence_parallel) return {};
  return {{{"sequence parallelism", {{paths::kSequenceParallel, true}}}}};
}

Steps sharded_optimizer(const Start& from) {
  if (from.plan.replicas() == 1) return {};
  Steps steps;
  for (int64_t stage = from.plan.parallelism.zero_stage + 1; stage <= 3; ++stage) {
    steps.push_back({{fmt::format("ZeRO stage {}", stage), {{paths::kZeroStage, stage}}}});
  }
  return steps;
}

Steps offloaded_optimizer(const Start& from) {
  const int64_t zero_stage = from.plan.parallelism.zero_stage;
  if (from.plan.training.optimizer_cpu_offload || zero_stage > 1) return {};
  Proposal offload{
      "optimizer offload",
      {{"training.optimizer_cpu_offload", true}, {"training.overlap_cpu_optimizer_d2h_h2d", true}}};
  if (zero_stage == 0) offload.edits.insert(offload.edits.begin(), {paths::kZeroStage, 1});
  return {{offload}};
}

/// Another kind of recompute than the plan's, where what selective means has no place.
Proposal recompute(const Start& from, const char* text, Recompute kind) {
  const TrainingConfig& t = from.plan.training;
  Proposal proposal{text, {{paths::kRecompute, to_string(kind)}}};
  if (t.selective_ac_option != kSelectiveByOperator) {
    proposal.edits.push_back({paths::kSelectiveOption, kSelectiveByOperator});
  }
  if (t.recompute_method != RecomputeMethod::kUniform) {
    proposal.edits.push_back({paths::kRecomputeMethod, to_string(RecomputeMethod::kUniform)});
  }
  if (t.recompute_num_layers != 1) proposal.edits.push_back({paths::kRecomputeLayers, 1});
  return proposal;
}

/// Full recompute of an eighth, a quarter and half of the layers of each chunk, which only
/// Megatron-LM has, where `wanted` says so of the number of layers and that of the plan.
Steps partial_recomputes(const Start& from, bool (*wanted)(int64_t layers, int64_t now)) {
  if (from.plan.training.framework != Framework::kMegatronLm) return {};
  const std::vector<int64_t> chunks = from.plan.layers_of_virtual_stages();
  const int64_t most = *std::max_element(chunks.begin(), chunks.end());
  const int64_t now = recomputed_layers(from.plan.training, most);
  Steps steps;
  int64_t before = 0;
  for (const int64_t part : {8, 4, 2}) {
    const int64_t layers = most / part;
    if (layers == before || !wanted(layers, now)) continue;
    steps.push_back({{fmt::format("full recompute of {} of the {} layers of a chunk", layers, most),
                      {{paths::kRecompute, to_string(Recompute::kFull)},
                       {paths::kRecomputeMethod, to_string(RecomputeMethod::kBlock)},
                       {paths::kRecomputeLayers, layers}}}});
    before = layers;
  }
  return steps;
}

Steps selective_recompute(const Start& from) {
  const TrainingConfig& t = from.plan.training;
  const bool helps =
      t.attention == Attention::kUnfused || traits_of(t.framework).selective_by_operator;
  if (t.recompute != Recompute::kNone || !helps) return {};
  return {{recompute(from, "selective recompute", Recompute::kSelective)}};
}

Steps full_recompute(const Start& from) {
  const TrainingConfig& t = from.plan.training;
  const bool is_whole =
      t.recompute == Recompute::kFull && t.recompute_method == RecomputeMethod::kUniform;
  if (is_whole) return {};
  Steps steps = partial_recomputes(from, [](int64_t layers, int64_t now) { return layers > now; });
  steps.push_back({recompute(from, "full recompute", Recompute::kFull)});
  return steps;
}

/// Other sizes, the largest first.
Steps micro_batches_where(const Start& from, bool (*wanted)(int64_t size, int64_t now)) {
  Steps steps;
  for (const int64_t size : micro_batch_sizes(from.plan)) {
    if (!wanted(size, from.plan.training.micro_batch_size)) continue;
    steps.push_back({{fmt::format("micro-batch {}", size), {{paths::kMicroBatch, size}}}});
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

Steps smaller_micro_batch(const Start& from) {
  return micro_batches_where(from, [](int64_t size, int64_t now) { return size < now; });
}

/// Gives an axis `times` as many ranks at the cost of data parallelism. A number that was given for
/// the data ranks gives way to what is left of the world, or to its part where the world follows
/// from it.
Proposal split_further(const Start& from, const char* axis, int64_t size, int64_t times) {
  const int64_t data = from.plan.data_parallel_size() / times;
  Proposal proposal{fmt::format("{} {} (data {})", axis, times * size, data),
                    {{fmt::format("parallelism.{}", axis), times * size}}};
  if (from.spec.says(paths::kData)) {
    proposal.edits.push_back({paths::kData, from.spec.says_world() ? Json("auto") : Json(data)});
  }
  return proposal;
}

/// Twice as many ranks of an axis as before, four times and so on, up to `most` of them.
std::vector<Proposal> splits(const Start& from, const char* axis, int64_t size, int64_t most) {
  std::vector<Proposal> all;
  const int64_t data = from.plan.data_parallel_size();
  for (int64_t times = 2; data % times == 0 && times * size <= most; times *= 2) {
    all.push_back(split_further(from, axis, size, times));
  }
  return all;
}

/// Experts that follow the tensor ranks may not divide among the ranks that are left: whole ones
/// do.
Ways with_whole_experts_at_last(const Start& from, const Proposal& proposal) {
  if (!from.plan.model.has_experts() || from.plan.expert_tensor_size() == 1) return {proposal};
  Proposal whole = proposal;
  whole.text += " and expert tensor 1";
  whole.edits.push_back({paths::kExpertTensor, 1});
  return {proposal, whole};
}

/// Of models that tensor ranks share under sequence parallelism alone.
bool lacks_sequence_parallelism(const Plan& plan) {
  const bool needed = plan.model.multi_latent_attention || plan.model.has_experts();
  return needed && !plan.parallelism.sequence_parallel;
}

Steps more_tensor_ranks(const Start& from) {
  Steps steps;
  const int64_t most = from.plan.cluster.gpus_per_node;
  for (Proposal& proposal : splits(from, "tensor", from.plan.parallelism.tensor, most)) {
    if (lacks_sequence_parallelism(from.plan)) {
      proposal.text += " and sequence parallelism";
      proposal.edits.push_back({paths::kSequenceParallel, true});
    }
    steps.push_back(with_whole_experts_at_last(from, proposal));
  }
  return steps;
}

Steps more_expert_ranks(const Start& from) {
  Steps steps;
  const int64_t now = from.plan.parallelism.expert;
  for (int64_t expert = 2 * now; expert <= from.plan.model.num_experts; expert *= 2) {
    steps.push_back(with_whole_experts_at_last(
        from, {fmt::format("expert {}", expert), {{"parallelism.expert", expert}}}));
  }
  return steps;
}

Steps more_context_ranks(const Start& from) {
  Steps steps;
  const int64_t most = from.plan.world_size();
  for (const Proposal& proposal : splits(from, "context", from.plan.parallelism.context, most)) {
    steps.push_back({proposal});
  }
  return steps;
}

Steps more_stages(const Start& from) {
  Steps steps;
  const int64_t most = from.plan.model.num_layers;
  for (Proposal& proposal : splits(from, "pipeline", from.plan.parallelism.pipeline, most)) {
    if (from.spec.says(paths::kLayersPerStage))
      proposal.edits.push_back({paths::kLayersPerStage, Json::array()});
    steps.push_back({proposal});
  }
  return steps;
}

Steps larger_micro_batch(const Start& from) {
  return micro_batches_where(from, [](int64_t size, int64_t now) { return size > now; });
}

Steps less_recompute(const Start& from) {
  if (from.plan.training.recompute == Recompute::kNone) return {};
  Steps steps = {{recompute(from, "no recompute", Recompute::kNone)}};
  for (Ways& fewer : partial_recomputes(
           from, [](int64_t layers, int64_t now) { return layers > 0 && layers < now; })) {
    steps.push_back(std::move(fewer));
  }
  return steps;
}

/// Of what the data ranks exchange once a step, beside the work.
Steps overlapped_data_ranks(const Start& from) {
  const ParallelConfig& p = from.plan.parallelism;
  const bool has_keys = !traits_of(from.plan.training.framework).deepspeed_engine;
  if (from.plan.replicas() == 1 || from.plan.fully_sharded() || !has_keys) return {};
  Proposal proposal{"overlap with the data ranks' communication", {}};
  if (!p.overlap_grad_reduce) {
    proposal.edits.push_back({paths::kOverlapReduce, true});
  }
  if (!p.overlap_param_gather && p.zero_stage == 1 && !gathers_in_turn(from.plan)) {
    proposal.edits.push_back({paths::kOverlapGather, true});
  }
  return proposal.edits.empty() ? Steps{} : Steps{{proposal}};
}

Steps gathers_at_once(const Start& from) {
  if (!from.plan.parallelism.overlap_param_gather || !gathers_in_turn(from.plan)) return {};
  return {{{"gathers of parameters at the end of the step, by all stages at once",
            {{paths::kOverlapGather, false}}}}};
}

Steps overlapped_tensor_ranks(const Start& from) {
  const ParallelConfig& p = from.plan.parallelism;
  if (p.tensor == 1 || !p.sequence_parallel || p.tp_comm_overlap) return {};
  return {
      {{"overlap with the tensor ranks' communication", {{"parallelism.tp_comm_overlap", true}}}}};
}

/// They cost no time, and change nothing of what is trained.
constexpr Kind kFree[] = {sequence_parallelism, flash_attention};

/// What is to be made before all others.
constexpr Kind kBasic[] = {flash_attention, sixteen_bits};

/// The basic ones, then those that cost least first.
constexpr Kind kMemorySaving[] = {flash_attention,
                                  sixteen_bits,
                                  expandable_segments,
                                  sequence_parallelism,
                                  sharded_optimizer,
                                  offloaded_optimizer,
                                  selective_recompute,
                                  smaller_micro_batch,
                                  full_recompute,
                                  more_tensor_ranks,
                                  more_expert_ranks,
                                  more_context_ranks,
                                  more_stages};

constexpr Kind kTimeSaving[] = {overlapped_data_ranks,
                                gathers_at_once,
                                overlapped_tensor_ranks,
                                less_recompute,
                                larger_micro_batch};

/// What keeps the global batch as it was, in the words in which it was said.
PlanEdits same_batch(const Start& from, const Plan& changed) {
  const int64_t batch = from.plan.global_batch_size();
  const Json said = from.spec.said(paths::kAccumulation);
  if (said.is_null() && changed.global_batch_size() == batch) return {};
  if (said.is_null()) return {{paths::kGlobalBatch, batch}};
  const int64_t samples = changed.training.micro_batch_size * changed.data_parallel_size();
  const int64_t steps = std::max<int64_t>(1, batch / samples);
  return said == steps ? PlanEdits() : PlanEdits{{paths::kAccumulation, steps}};
}

/// The change, if the rules allow it. Where the global batch followed from what is changed it is
/// given as it was: a step of less work is not a faster one. The framework follows from what is
/// changed where nobody said it.
std::optional<PlanChange> change_of(const Start& from, const Proposal& proposal) {
  PlanChange change{.text = proposal.text, .edits = proposal.edits, .plan = {}};
  const PlanSpec open = from.spec.with({{paths::kAccumulation, "auto"}});
  try {
    change.plan = resolve_plan(open.with(change.edits));
    change.edits = merged(change.edits, same_batch(from, change.plan));
    change.plan = resolve_plan(from.spec.with(change.edits));
  } catch (const UserError&) {
    return {};
  }
  const bool is_same_job = change.plan.world_size() == from.plan.world_size() &&
                           change.plan.global_batch_size() == from.plan.global_batch_size();
  if (!is_same_job) return {};
  if (change.plan.training.framework == from.plan.training.framework) return change;
  if (from.spec.says(paths::kFramework)) return {};
  change.text += fmt::format(" ({})", to_string(change.plan.training.framework));
  return change;
}

/// The place of a kind among those that save memory, or behind all of these.
std::size_t number_of(Kind kind) {
  return static_cast<std::size_t>(
      std::distance(std::begin(kMemorySaving),
                    std::find(std::begin(kMemorySaving), std::end(kMemorySaving), kind)));
}

ChangeLadder ladder_of(const Start& from, Kind kind) {
  ChangeLadder ladder;
  for (const Ways& step : kind(from)) {
    for (const Proposal& proposal : step) {
      std::optional<PlanChange> change = change_of(from, proposal);
      if (!change) continue;
      change->kind = number_of(kind);
      change->is_basic = std::find(std::begin(kBasic), std::end(kBasic), kind) != std::end(kBasic);
      ladder.push_back(std::move(*change));
      break;
    }
  }
  return ladder;
}

void add_ladders(const Start& from, std::span<const Kind> kinds, std::vector<ChangeLadder>& all) {
  for (const Kind kind : kinds) {
    ChangeLadder ladder = ladder_of(from, kind);
    if (!ladder.empty()) all.push_back(std::move(ladder));
  }
}

}  // namespace

std::vector<int64_t> micro_batch_sizes(const Plan& plan) {
  const int64_t samples = plan.global_batch_size() / plan.data_parallel_size();
  std::vector<int64_t> small, large;
  for (int64_t size = 1; size <= samples / size; ++size) {
    if (samples % size != 0) continue;
    small.push_back(size);
    if (samples / size != size) large.push_back(samples / size);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::vector<ChangeLadder> memory_saving_changes(const PlanSpec& spec) {
  const Plan plan = resolve_plan(spec);
  std::vector<ChangeLadder> all;
  add_ladders({spec, plan}, kMemorySaving, all);
  return all;
}

std::vector<PlanChange> free_changes(const PlanSpec& spec) {
  const Plan plan = resolve_plan(spec);
  std::vector<ChangeLadder> all;
  add_ladders({spec, plan}, kFree, all);
  std::vector<PlanChange> first;
  first.reserve(all.size());
  for (ChangeLadder& ladder : all) first.push_back(std::move(ladder.front()));
  return first;
}

ChangeLadder smaller_micro_batches(const PlanSpec& spec) {
  return ladder_of({spec, resolve_plan(spec)}, smaller_micro_batch);
}

bool can_offload_optimizer(const PlanSpec& spec) {
  return !ladder_of({spec, resolve_plan(spec)}, offloaded_optimizer).empty();
}

std::vector<ChangeLadder> time_saving_changes(const PlanSpec& spec) {
  const Plan plan = resolve_plan(spec);
  std::vector<ChangeLadder> all;
  add_ladders({spec, plan}, kTimeSaving, all);
  return all;
}

}  // namespace estimator
