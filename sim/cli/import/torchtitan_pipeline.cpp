#include "sim/cli/import/torchtitan_pipeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/units.h"
#include "estimator/plan/dealt_layers.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/resolve/sized_model.h"
#include "sim/cli/import/tree_entries.h"

namespace sim {
namespace {

using estimator::Json;

constexpr const char* kTechnique = "torch-pipeline";

/// Whether the job says something with the key: a list, or a text that is not empty.
bool says(const SourceEntry* entry) {
  const std::vector<std::string> nothing = {""};
  return entry != nullptr && entry->values != nothing && !entry->is_null;
}

/// Qwen3's TrainSpec has no function that divides the model (pipelining_fn in
/// models/qwen3/__init__.py of v0.2.2; the other models without one are refused by name).
void refuse_whole_model(const SourceEntry& name, const SourceEntry* stages) {
  if (name.value() != "qwen3" || stages == nullptr) return;
  throw estimator::UserError({.what = "TorchTitan does not divide this model into pipeline stages",
                              .where = fmt::format("{}: {} = \"{}\", {} = {}",
                                                   stages->place,
                                                   name.shown(),
                                                   name.value(),
                                                   stages->shown(),
                                                   stages->value()),
                              .help = "use pipeline_parallel_degree = 1"});
}

/// What is written by hand, or is a schedule that splits the backward.
void refuse_other_schedules(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  constexpr std::string_view kKnown[] = {"1F1B", "GPipe", "Interleaved1F1B"};
  const SourceEntry* schedule = find_entry(entries, "parallelism.pipeline-parallel-schedule");
  if (schedule != nullptr && !estimator::contains(kKnown, schedule->value()))
    add_technique(plan, kTechnique, *schedule);
  for (const char* key : {"parallelism.pipeline-parallel-schedule-csv",
                          "parallelism.module-fqns-per-model-part",
                          "experimental.pipeline-parallel-degree"}) {
    const SourceEntry* entry = find_entry(entries, key);
    if (says(entry)) add_technique(plan, kTechnique, *entry);
  }
}

/// An update of several steps of the schedule, each of which fills and empties the pipeline.
void refuse_several_steps(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  const SourceEntry* batch = find_entry(entries, "training.global-batch-size");
  if (batch == nullptr || number_of_entry(entries, batch->key, -1) <= 0) return;
  const Json data = said_key(plan, "parallelism.data");
  const int64_t local = number_of_entry(entries, "training.local-batch-size", 8);
  const bool is_one = data.is_number_integer() &&
                      number_of_entry(entries, batch->key, -1) == local * data.get<int64_t>();
  if (!is_one) add_technique(plan, kTechnique, *batch);
}

/// build_pipeline_schedule() cuts the local batch into micro-batches.
void set_micro_batches(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  constexpr int64_t kDefaultBatch = 8;
  const int64_t batch =
      number_of_entry(entries,
                      "training.local-batch-size",
                      number_of_entry(entries, "training.batch-size", kDefaultBatch));
  const int64_t size = number_of_entry(entries, "parallelism.pipeline-parallel-microbatch-size", 1);
  if (size <= 0 || batch % size != 0) {
    throw estimator::UserError(
        {.what = "micro-batches do not divide the batch of a pipeline",
         .where = fmt::format("{}: local_batch_size = {}, pipeline_parallel_microbatch_size = {}",
                              plan.origin,
                              batch,
                              size),
         .help = "TorchTitan wants a multiple"});
  }
  set_key(plan, "training.micro_batch_size", size);
  if (said_key(plan, "training.global_batch_size").is_null())
    set_key(plan, "training.gradient_accumulation_steps", batch / size);
}

/// How a job deals the layers of its model.
struct Dealing {
  int64_t first_counts = 1, last_counts = 1;  ///< as DealtLayers'
  int64_t layers_of_piece = 0;                ///< 0: not said
  bool interleaves = false;

  /// pipeline_llm(): as many chunks as layers_per_stage makes of the layers, else two where the
  /// schedule interleaves.
  int64_t chunks(int64_t layers, int64_t stages) const {
    if (layers_of_piece <= 0 || layers == 0) return interleaves ? 2 : 1;
    const int64_t counted = layers + first_counts + last_counts;
    return std::max<int64_t>(1, estimator::divide_up(counted, layers_of_piece) / stages);
  }
};

Dealing dealing_of(const std::vector<SourceEntry>& entries, bool interleaves) {
  const auto number = [&](const char* key, int64_t fallback) {
    return number_of_entry(entries, key, fallback);
  };
  return {.first_counts = number("parallelism.pipeline-parallel-first-stage-less-layers", 1),
          .last_counts = number("parallelism.pipeline-parallel-last-stage-less-layers", 1),
          .layers_of_piece = number("parallelism.pipeline-parallel-layers-per-stage", 0),
          .interleaves = interleaves};
}

/// Of the model and the stages that file and flags say together. What flags say of chunks and of
/// layers of stages stays.
void deal(const Dealing& dealing, Json& tree) {
  constexpr const char* kChunks = "parallelism.virtual_stages";
  constexpr const char* kLayers = "parallelism.layers_per_stage";
  const Json stages = estimator::find_in_tree(tree, "parallelism.pipeline");
  const bool has_stages = stages.is_number_integer() && stages > 1;
  if (!has_stages || !estimator::find_in_tree(tree, kLayers).is_null()) return;
  const int64_t layers =
      estimator::number_of_model(tree, "num_layers", &estimator::ModelConfig::num_layers)
          .value_or(0);
  const Json said = estimator::find_in_tree(tree, kChunks);
  const int64_t chunks = said.is_number_integer() ? said.get<int64_t>()
                                                  : dealing.chunks(layers, stages.get<int64_t>());
  if (said.is_null() && chunks > 1) estimator::set_in_tree(tree, kChunks, chunks, kTechnique);
  // Without this TorchTitan deals as a plan does.
  if (dealing.first_counts == 1 && dealing.last_counts == 1) return;
  const std::vector<int64_t> of_pieces =
      estimator::dealt_layers({.layers = layers,
                               .pieces = stages.get<int64_t>() * chunks,
                               .first_counts = dealing.first_counts,
                               .last_counts = dealing.last_counts});
  if (!of_pieces.empty()) estimator::set_in_tree(tree, kLayers, of_pieces, kTechnique);
}

void set_stages(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  const SourceEntry* schedule = find_entry(entries, "parallelism.pipeline-parallel-schedule");
  const std::string name = schedule == nullptr ? "1F1B" : schedule->value();
  if (name == "GPipe") set_key(plan, "parallelism.pipeline_schedule", "gpipe");
  const Dealing dealing = dealing_of(entries, name == "Interleaved1F1B");
  plan.derive_keys = [dealing](Json& tree, const estimator::PlanContext&) { deal(dealing, tree); };
}

/// These keys have an effect where there is a pipeline.
void move_to_modelled(ImportedPlan& plan) {
  const auto is_of_pipeline = [](const SourceEntry& entry) {
    return entry.key.starts_with("parallelism.pipeline-parallel-");
  };
  std::copy_if(plan.without_effect.begin(),
               plan.without_effect.end(),
               std::back_inserter(plan.modelled),
               is_of_pipeline);
  std::erase_if(plan.without_effect, is_of_pipeline);
}

}  // namespace

void set_torchtitan_pipeline(const std::vector<SourceEntry>& entries,
                             const SourceEntry& model_name,
                             ImportedPlan& plan) {
  const Json stages = said_key(plan, "parallelism.pipeline");
  if (!stages.is_number_integer() || stages.get<int64_t>() <= 1) return;
  refuse_whole_model(model_name, find_entry(entries, "parallelism.pipeline-parallel-degree"));
  refuse_other_schedules(entries, plan);
  refuse_several_steps(entries, plan);
  set_micro_batches(entries, plan);
  set_stages(entries, plan);
  move_to_modelled(plan);
  // apply_fsdp() does not free parameters after a forward by default.
  const SourceEntry* policy = find_entry(entries, "parallelism.fsdp-reshard-after-forward");
  const bool is_default = policy == nullptr || policy->value() == "default";
  if (is_default && said_key(plan, "parallelism.zero_stage") == 3)
    set_key(plan, "parallelism.zero_stage", 2);
}

}  // namespace sim
