#include "sim/cli/import/torchtitan_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/import/toml_entries.h"
#include "sim/cli/import/torchtitan_pipeline.h"

namespace onerank_data {
extern const std::string_view import_torchtitan_json;
extern const std::string_view import_torchtitan_defaults_json;
extern const std::string_view import_torchtitan_models_json;
}  // namespace onerank_data

namespace sim {

/// A flavor of a model that TorchTitan has by name.
struct FlavorRow {
  std::string name;
  std::string flavor;
  std::string technique;
  estimator::JsonValue model;
};
template <class Visitor>
void visit_fields(Visitor& visit, FlavorRow& row) {
  visit("name", row.name, "pattern of model.name");
  visit("flavor", row.flavor, "pattern of model.flavor");
  visit("technique", row.technique, "what its layers have that is not modelled");
  visit("model", row.model, "a plan's model");
}

namespace {

using estimator::Json;

const KeyTable& torchtitan_table() {
  static const KeyTable table = {
      .program = "TorchTitan",
      .rows = read_key_rows(onerank_data::import_torchtitan_json, "torchtitan.json"),
      .defaults = estimator::read_database<DefaultRow>(
          onerank_data::import_torchtitan_defaults_json, "torchtitan_defaults.json"),
      .flags = false};
  return table;
}

SourceEntry entry_named(const std::vector<SourceEntry>& entries,
                        const std::string& key,
                        const std::string& otherwise,
                        const std::string& origin) {
  const auto found = std::find_if(
      entries.begin(), entries.end(), [&](const SourceEntry& entry) { return entry.key == key; });
  if (found != entries.end()) return *found;
  return {.key = key, .values = {otherwise}, .place = origin};
}

/// A model of TorchTitan's own whose flavors are all in the table, and this is none of them.
void refuse_unknown_flavor(const std::vector<FlavorRow>& rows,
                           const SourceEntry& name,
                           const SourceEntry& flavor) {
  std::vector<std::string> known;
  for (const FlavorRow& row : rows) {
    if (row.name == name.value()) known.push_back(row.flavor);
  }
  if (known.empty()) return;
  throw estimator::UserError({.what = "TorchTitan's model has no such flavor",
                              .where = fmt::format("{}: {} = \"{}\", {} = \"{}\"",
                                                   flavor.place,
                                                   name.shown(),
                                                   name.value(),
                                                   flavor.shown(),
                                                   flavor.value()),
                              .help = estimator::suggestion(flavor.value(), known)});
}

void set_model(const SourceEntry& name, const SourceEntry& flavor, ImportedPlan& plan) {
  static const auto rows = estimator::read_database<FlavorRow>(
      onerank_data::import_torchtitan_models_json, "torchtitan_models.json");
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const FlavorRow& candidate) {
    return estimator::matches_glob(name.value(), candidate.name) &&
           estimator::matches_glob(flavor.value(), candidate.flavor);
  });
  if (row == rows.end() || row->name == "*") refuse_unknown_flavor(rows, name, flavor);
  if (row == rows.end()) return;
  if (!row->model.json().is_null()) set_key(plan, "model", row->model.json());
  if (row->technique.empty()) return;
  SourceEntry use = flavor;
  use.as_written = fmt::format("{} {}, {}", name.shown(), name.value(), flavor.shown());
  add_technique(plan, row->technique, std::move(use));
}

int64_t degree(const ImportedPlan& plan, const char* path, int64_t otherwise) {
  const Json said = said_key(plan, path);
  return said.is_number_integer() ? said.get<int64_t>() : otherwise;
}

/// What computes in 16 bits is FSDP, and without it autocast, which tensor and pipeline ranks turn
/// off (maybe_enable_amp in distributed/utils.py of v0.2.2).
void set_types_without_sharding(SourceEntry sharding, ImportedPlan& plan) {
  if (said_key(plan, "training.dtype") == "fp32") return;
  const bool is_divided =
      degree(plan, "parallelism.tensor", 1) > 1 || degree(plan, "parallelism.pipeline", 1) > 1;
  if (!is_divided) return add_technique(plan, "autocast", std::move(sharding));
  set_key(plan, "training.dtype", "fp32");
  plan.notes.push_back(
      fmt::format("{}: without FSDP all is in fp32 under tensor and pipeline ranks, whatever "
                  "mixed_precision_param says",
                  sharding.place));
}

/// Llama's replicas alone are DistributedDataParallel's, which TorchTitan refuses beside other
/// degrees (parallelize_llama in models/llama3/infra/parallelize.py of v0.2.2, and llama4).
void refuse_divided_replicas(const SourceEntry& name,
                             const SourceEntry& sharding,
                             const ImportedPlan& plan) {
  const int64_t replicas = degree(plan, "parallelism.num_distributed_optimizer_instances", 1);
  const int64_t others =
      degree(plan, "parallelism.tensor", 1) * degree(plan, "parallelism.pipeline", 1);
  if (replicas == 1 || others == 1 || !name.value().starts_with("llama")) return;
  throw estimator::UserError(
      {.what = "TorchTitan runs replicas that nothing shards with no other parallelism",
       .where = fmt::format("{}: data_parallel_replicate_degree = {}, {} = {}, {} tensor and "
                            "pipeline ranks",
                            sharding.place,
                            replicas,
                            sharding.shown(),
                            sharding.value(),
                            others),
       .help = "use data_parallel_shard_degree 2 or more, or one replica"});
}

/// TorchTitan counts the ranks that shard and their replicas apart, and replicas whose parameters
/// nothing shards are DistributedDataParallel's (ParallelDims in distributed/parallel_dims.py).
void set_data_ranks(const SourceEntry& name, SourceEntry sharding, ImportedPlan& plan) {
  constexpr const char* kReplicas = "parallelism.num_distributed_optimizer_instances";
  const int64_t shards = degree(plan, "parallelism.data", 0);  // 0: those that are left
  const int64_t replicas = degree(plan, kReplicas, 1);
  int64_t ranks = 0;
  if (shards == 0 || __builtin_mul_overflow(shards, replicas, &ranks)) return;
  set_key(plan, "parallelism.data", ranks);
  if (shards > 1 || degree(plan, "parallelism.context", 1) > 1) return;
  refuse_divided_replicas(name, sharding, plan);
  set_key(plan, "parallelism.zero_stage", 0);
  set_key(plan, kReplicas, 1);
  set_types_without_sharding(std::move(sharding), plan);
}

/// The policy `always` is for norm and output layer, too (apply_fsdp in
/// models/llama3/infra/parallelize.py).
void set_last_unit(const SourceEntry& policy, ImportedPlan& plan) {
  const bool reshards = said_key(plan, "parallelism.zero_stage") == 3;
  if (reshards && policy.value() == "always") {
    set_key(plan, "parallelism.reshard_last_unit", true);
  }
}

/// Throws UserError if a job's shards are the ranks that its layout leaves over (degree -1), and
/// these are one: TorchTitan then shards nothing (fsdp_enabled in distributed/parallel_dims.py of
/// v0.2.2), and computes under autocast. `tree` has what the file and the flags say.
void refuse_one_shard(const Json& tree, const estimator::PlanContext& context) {
  estimator::Plan plan;
  try {
    plan = estimator::resolve_plan(tree, context);
  } catch (const estimator::UserError&) {
    return;  // which is said where the plan is resolved for its own sake
  }
  const bool is_torchtitan = plan.training.framework == estimator::Framework::kTorchtitan;
  if (!is_torchtitan || !plan.fully_sharded() || plan.replicas() > 1) return;
  throw estimator::UserError(
      {.what = "not modelled: TorchTitan shards parameters only over several ranks, and computes "
               "under autocast over fp32 parameters on one",
       .where = fmt::format("{}: parallelism.data_parallel_shard_degree -1 of {} ranks is 1",
                            context.origin,
                            plan.world_size()),
       .help = "use more GPUs; --zero-stage 0 --dtype fp32 has the same parameters, with larger "
               "activations and slower products"});
}

}  // namespace

ImportedPlan import_torchtitan_config(const std::string& text, const std::string& origin) {
  return import_torchtitan_entries(toml_entries(text, origin), origin);
}

ImportedPlan import_torchtitan_entries(const std::vector<SourceEntry>& entries,
                                       const std::string& origin) {
  const SourceEntry name = entry_named(entries, "model.name", "llama3", origin);
  const SourceEntry flavor = entry_named(entries, "model.flavor", "debugmodel", origin);
  ImportedPlan plan = import_entries(entries, torchtitan_table(), origin);
  set_model(name, flavor, plan);
  set_data_ranks(
      name, entry_named(entries, "parallelism.data-parallel-shard-degree", "-1", origin), plan);
  set_last_unit(entry_named(entries, "parallelism.fsdp-reshard-after-forward", "default", origin),
                plan);
  set_torchtitan_pipeline(entries, name, plan);
  plan.derive_keys = [deal = plan.derive_keys](Json& tree, const estimator::PlanContext& context) {
    if (deal) deal(tree, context);
    refuse_one_shard(tree, context);
  };
  // parallelize_llama() in models/llama3/infra/parallelize.py always divides the sequence.
  const Json tensor = said_key(plan, "parallelism.tensor");
  const bool is_said = !said_key(plan, "parallelism.sequence_parallel").is_null();
  if (tensor.is_number_integer() && tensor > 1 && !is_said)
    set_key(plan, "parallelism.sequence_parallel", true);
  return plan;
}

}  // namespace sim
