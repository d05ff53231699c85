#include "estimator/compose/pieces.h"

#include <algorithm>
#include <cmath>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/cluster/profile_match.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/layer_parameters.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {
namespace {

constexpr int64_t kStages = 4;
constexpr int64_t kStagesOfOthers = 2;  ///< of another first stage, with fewer in flight

/// PyTorch's DistributedDataParallel makes buckets only where there is somebody to reduce with.
bool lacks_reducer_buckets(const Plan& plan) {
  if (!traits_of(plan.training.framework).reducer_buckets || plan.parallelism.zero_stage > 0) {
    return false;
  }
  return plan.replicas() == 1 || (plan.model.has_experts() && plan.expert_replicas() == 1);
}

/// Whether a stage of so many data ranks has its experts several times, so that there is something
/// to share.
bool repeats_experts(const Plan& plan, int64_t data) {
  const ParallelConfig& p = plan.parallelism;
  const int64_t ranks = p.tensor * p.context * data;
  const int64_t of_experts = ranks_of_experts(plan);
  return ranks % of_experts == 0 && ranks > of_experts;
}

/// The data ranks of the plan's world, so that shards, and with them what the allocator loses, are
/// as large as in most of its layouts; at least two in a pipeline, so that there is something to
/// share, unless its own number decides what there is.
int64_t data_ranks_of_pieces(const Plan& plan, int64_t stages) {
  if (stages == 1 || data_ranks_change_pieces(plan)) return plan.data_parallel_size();
  const int64_t ranks = plan.parallelism.tensor * plan.parallelism.context * stages;
  const int64_t of_world = plan.world_size() / ranks;
  const bool is_whole = plan.world_size() % ranks == 0;
  if (of_world >= 2 && is_whole && repeats_experts(plan, of_world)) return of_world;
  for (int64_t data = 2;; ++data) {
    const bool fills_machines = ranks * data % plan.cluster.gpus_per_node == 0;
    if (fills_machines && repeats_experts(plan, data)) return data;
  }
}

/// Gradients are added up from the second one on.
int64_t micro_batches_of_pieces(const Plan& plan, int64_t stages) {
  return stages == 1 ? std::min(kMicroBatchesOfPieces, plan.micro_batches())
                     : kMicroBatchesOfPieces;
}

/// Of `parallelism`, what follows anew in a plan with other stages.
void erase_what_pieces_have_not(Json& parallelism) {
  for (const char* key : {"layers_per_stage",
                          "bucket_elements",
                          "overlap_param_gather_with_optimizer_step",
                          "overlap_p2p_communication",
                          "overlap_p2p_warmup_flush",
                          "microbatch_group_size_per_virtual_stage"}) {
    parallelism.erase(key);
  }
}

/// A pattern that has a number for each layer, for so many of them; [n] means each n-th layer.
void repeat_pattern(int64_t period, int64_t layers, Json& pattern) {
  if (pattern.size() <= 1) return;
  Json repeated = Json::array();
  for (int64_t layer = 0; layer < layers; ++layer) repeated.push_back(pattern[layer % period]);
  pattern = std::move(repeated);
}

/// The model with so many layers in each stage, and its dense layers before those of the first one.
void set_layers(const Plan& plan, int64_t stages, int64_t layers, Json& tree) {
  const int64_t dense = plan.model.dense_layers_first().value_or(0);
  tree["model"]["num_layers"] = stages * layers + dense;
  if (dense > 0) {
    std::vector<int64_t> pattern(static_cast<std::size_t>(stages * layers + dense), 1);
    std::fill_n(pattern.begin(), dense, 0);
    tree["model"]["moe_layer_freq"] = pattern;
  }
  for (const char* key : {"no_rope_freq", "window_attn_skip_freq"}) {
    repeat_pattern(plan.model.attention_period(), stages * layers + dense, tree["model"][key]);
  }
  const FrameworkTraits& framework = traits_of(plan.training.framework);
  const bool deals_unevenly = framework.stages_by_cost || framework.torch_pipeline;
  if (stages == 1 || (dense == 0 && !deals_unevenly)) return;
  std::vector<int64_t> of_stages(static_cast<std::size_t>(stages), layers);
  of_stages.front() += dense;
  tree["parallelism"]["layers_per_stage"] = of_stages;
}

/// The plan of a pipeline of `stages` stages with `layers` layers each. All pieces of a family have
/// as many data ranks.
Plan piece_plan(const Plan& plan, int64_t stages, int64_t layers) {
  const ParallelConfig& p = plan.parallelism;
  const int64_t data = data_ranks_of_pieces(plan, stages == 1 ? 1 : kStages);
  const int64_t world = p.tensor * p.context * stages * data;
  Json tree = to_json(plan);
  Json& parallelism = tree["parallelism"];
  parallelism["pipeline"] = stages;
  parallelism["data"] = data;
  parallelism["virtual_stages"] = 1;
  erase_what_pieces_have_not(parallelism);
  set_layers(plan, stages, layers, tree);
  Json& cluster = tree["cluster"];
  if (world % plan.cluster.gpus_per_node != 0) cluster["gpus_per_node"] = world;
  cluster["nodes"] = world / cluster["gpus_per_node"].get<int64_t>();
  tree["training"].erase("gradient_accumulation_steps");
  tree["training"]["global_batch_size"] =
      micro_batches_of_pieces(plan, stages) * data * plan.training.micro_batch_size;
  return resolve_plan(tree, {.origin = "a piece of the plan"});
}

PieceRun piece_run(const Plan& plan, int64_t stage, int64_t layers) {
  const ScheduleShape shape = schedule_shape(plan);
  for (const RankClass& one : rank_classes(plan)) {
    if (std::find(one.stages.begin(), one.stages.end(), stage) == one.stages.end()) continue;
    return {.place = place_of(stage, shape.stages),
            .layers = layers,
            .in_flight = forwards_in_flight(shape, stage),
            .plan = plan,
            .rank = one.representative_rank};
  }
  throw std::logic_error("a stage is in no class");
}

bool shares_optimizer(const Plan& plan) { return plan.parallelism.zero_stage >= 1; }

/// Once for each bucket of the data ranks, whose size depends on their number.
bool is_of_buckets(const CollectiveRecord& record) {
  return is_of_replicas(record.call.group) && !is_per_micro_batch(record.direction);
}

/// The same elements in buckets of another size.
void fill_buckets(double growth, CollectiveRecord& record) {
  if (growth == 1 || record.count <= 1) return;
  const auto before = static_cast<double>(record.count);
  const double after = std::max(1.0, std::round(before / growth));
  record.count = record.executed_count = static_cast<int64_t>(after);
  record.call.bytes = std::llround(static_cast<double>(record.call.bytes) * before / after);
}

/// The neighbours of a stage that has moved along the pipeline, which is a ring for virtual stages.
void move_peer(int64_t moved, CollectiveCall& call) {
  if (call.group != GroupKind::kPipeline || call.peer < 0) return;
  const int64_t stages = call.group_size;
  call.peer = ((call.peer + moved) % stages + stages) % stages;
}

}  // namespace

double share_of_way(double layers) {
  constexpr auto kSmall = static_cast<double>(kPieceLayers.front());
  constexpr auto kLarge = static_cast<double>(kPieceLayers.back());
  return (layers - kSmall) / (kLarge - kSmall);
}

StagePlace place_of(int64_t piece, int64_t pieces) {
  if (pieces == 1) return StagePlace::kOnly;
  if (piece == 0) return StagePlace::kFirst;
  return piece == pieces - 1 ? StagePlace::kLast : StagePlace::kMiddle;
}

bool data_ranks_change_pieces(const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  return p.pipeline == 1 || p.divides_gradients() || lacks_reducer_buckets(plan);
}

std::string family_of(const Plan& plan) {
  Json seen = without_what_changes_no_rank(to_json(plan));
  Json& parallelism = seen["parallelism"];
  for (const char* key : {"pipeline", "virtual_stages"}) parallelism.erase(key);
  erase_what_pieces_have_not(parallelism);
  if (!data_ranks_change_pieces(plan)) parallelism.erase("data");
  seen["training"].erase("global_batch_size");
  seen["training"].erase("gradient_accumulation_steps");
  seen["micro_batches"] = micro_batches_of_pieces(plan, plan.parallelism.pipeline);
  seen.erase("cluster");
  return seen.dump();
}

std::string obstacle_to_composition(const Plan& plan) {
  if (!plan.model.dense_layers_first()) return "its layers with and without experts are mixed";
  if (plan.parallelism.pipeline_schedule != ScheduleKind::kOneForwardOneBackward) {
    return "its schedule is not 1f1b";
  }
  if (plan.parallelism.overlap_moe_expert_parallel_comm) {
    return "it runs forwards together with backwards";
  }
  const TrainingConfig& t = plan.training;
  if (t.recompute_method == RecomputeMethod::kBlock || t.recompute_num_layers > 1) {
    return "it recomputes some of its layers alone, or several as one";
  }
  if (plan.parallelism.defer_embedding_wgrad_compute) return "its last stage defers gradients";
  if (plan.training.optimizer == Optimizer::kMuon) return "its optimizer updates whole matrices";
  if (plan.parallelism.num_distributed_optimizer_instances > 1) {
    return "its optimizer has several instances";
  }
  if (plan.training.empty_unused_memory_level > 0) return "it gives back memory in each iteration";
  if (plan.training.optimizer_cpu_offload) return "its optimizer is offloaded";
  if (traits_of(plan.training.framework).whole_parameters) {
    return "its framework shares whole parameters among data ranks";
  }
  return "";
}

std::string obstacle_of_layout(const Plan& plan) {
  if (plan.parallelism.pipeline == 1) return "";
  std::vector<int64_t> layers = plan.layers_of_virtual_stages();
  const int64_t dense = plan.model.dense_layers_first().value_or(0);
  layers.front() -= dense;
  if (layers.front() < 0) return "dense layers in more than the first piece of the pipeline";
  const int64_t period = plan.model.attention_period();
  layers.insert(layers.end(), kPieceLayers.begin(), kPieceLayers.end());
  const bool are_alike = std::all_of(
      layers.begin(), layers.end(), [&](int64_t of_piece) { return of_piece % period == 0; });
  return are_alike ? ""
                   : "pieces of the pipeline without equally many layers of each kind of attention";
}

std::vector<PieceRun> piece_runs(const Plan& plan) {
  const int64_t all_layers = plan.model.num_layers;
  if (plan.parallelism.pipeline == 1) {
    const int64_t alike = all_layers - plan.model.dense_layers_first().value_or(0);
    return {piece_run(piece_plan(plan, 1, alike), 0, all_layers)};
  }
  std::vector<PieceRun> runs;
  for (const int64_t layers : kPieceLayers) {
    const Plan piece = piece_plan(plan, kStages, layers);
    for (int64_t stage = 0; stage < kStages; ++stage) {
      runs.push_back(piece_run(piece, stage, layers));
    }
  }
  const int64_t layers = kPieceLayers.front();
  runs.push_back(piece_run(piece_plan(plan, kStagesOfOthers, layers), 0, layers));
  return runs;
}

int64_t number_of_pieces(const Plan& plan) {
  if (plan.parallelism.pipeline == 1) return 1;
  return kStages * static_cast<int64_t>(kPieceLayers.size()) + 1;
}

std::vector<PieceRun> probe_runs(const Plan& plan) {
  const int64_t layers = kPieceLayers.front();
  if (layers % plan.model.attention_period() != 0) return {};
  try {
    const Plan piece = piece_plan(plan, kStages, layers);
    return {piece_run(piece, 1, layers), piece_run(piece, 2, layers)};
  } catch (const UserError&) {  // a rule that holds for pipelines
    return {};
  }
}

void make_stage_of(const Plan& plan,
                   int64_t stage,
                   const PieceRun& run,
                   const RankProfile& profile,
                   StageRecords& records) {
  const ParallelLayout layout(plan.parallelism);
  const auto replicas = [](const Plan& of) { return static_cast<double>(of.replicas()); };
  records.rank = layout.rank({.pipeline = stage});
  records.stage = stage;
  records.optimizer_share = shares_optimizer(plan) ? replicas(run.plan) / replicas(plan) : 1;
  const double growth =
      static_cast<double>(plan.bucket_elements()) / static_cast<double>(run.plan.bucket_elements());
  if (records.collectives.empty()) records.collectives = profile.collectives;
  for (std::size_t i = 0; i < profile.collectives.size(); ++i) {
    CollectiveRecord& record = records.collectives[i];
    record.call = profile.collectives[i].call;
    record.count = record.executed_count = profile.collectives[i].count;
    record.call.group_size = layout.group(record.call.group, records.rank).size();
    move_peer(stage - profile.coordinate.pipeline, record.call);
    if (!is_of_buckets(record)) continue;
    fill_buckets(growth, record);
    if (record.call.group_size == 1) record.count = record.executed_count = 0;
  }
}

}  // namespace estimator
