#include "estimator/what_if/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/compose/pieces.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/plan/option_table.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/combinations.h"
#include "estimator/what_if/option_paths.h"

namespace estimator {
namespace {

constexpr int64_t kLongSequence = 16384;
constexpr int64_t kMostContextRanks = 16;
constexpr int64_t kShortSequence = 4096;  ///< from here on two context ranks are tried
constexpr int64_t kLargestMicroBatch = 16;
constexpr int64_t kMostZeroStages = 3;

std::vector<Json> doubled_up_to(int64_t most) {
  std::vector<Json> values;
  for (int64_t value = 1; value <= most; value *= 2) values.push_back(value);
  return values;
}

std::vector<Json> divisors(int64_t number, int64_t most) {
  std::vector<Json> values;
  for (int64_t value = 1; value <= std::min(number, most); ++value) {
    if (number % value == 0) values.push_back(value);
  }
  return values;
}

int64_t most_context_ranks(int64_t sequence) {
  if (sequence >= kLongSequence) return kMostContextRanks;
  return sequence >= kShortSequence ? 2 : 1;
}

/// What stands in the place of layers, so that stages are equal: nothing, or the embedding and the
/// loss (126 layers over 16 stages are 7, 8, ..., 8, 7). Models that predict more tokens have that
/// beside the loss, too; those with dense layers first have an odd number of layers in practice, of
/// which the loss takes the place of two (61 layers over 16 stages are 3, 4, ..., 4, 2).
std::vector<int64_t> ends_of(const ModelConfig& model) {
  std::vector<int64_t> ends = {0, 2};
  const bool has_dense = model.dense_layers_first().value_or(0) > 0;
  if (model.predicts_more_tokens()) {
    ends.push_back(2 + model.mtp_num_layers);
  } else if (has_dense) {
    ends.push_back(3);
  }
  return ends;
}

/// The layers of each piece of a pipeline with these ends; empty where that does not make pieces of
/// one size.
std::vector<int64_t> layers_beside(int64_t ends, int64_t layers, int64_t pieces) {
  const int64_t of_piece = (layers + ends) / pieces;
  if (ends == 0 || pieces < 2 || (layers + ends) % pieces != 0 || of_piece < ends) return {};
  std::vector<int64_t> pieces_layers(static_cast<std::size_t>(pieces), of_piece);
  --pieces_layers.front();
  pieces_layers.back() -= ends - 1;
  return pieces_layers;
}

/// The layers of each piece where they do not divide evenly; empty where nothing makes them even.
std::vector<int64_t> layers_beside_ends(const ModelConfig& model, int64_t pieces) {
  for (const int64_t ends : ends_of(model)) {
    std::vector<int64_t> layers = layers_beside(ends, model.num_layers, pieces);
    if (!layers.empty()) return layers;
  }
  return {};
}

/// Pieces into which layers can be divided, with or without the ends, by ascending number.
std::vector<Json> numbers_of_pieces(const ModelConfig& model, int64_t most) {
  std::vector<Json> values;
  const std::vector<int64_t> all_ends = ends_of(model);
  for (int64_t value = 1; value <= std::min(model.num_layers, most); ++value) {
    const bool divides = std::any_of(all_ends.begin(), all_ends.end(), [&](int64_t ends) {
      return (model.num_layers + ends) % value == 0;
    });
    if (divides) values.push_back(value);
  }
  return values;
}

/// Whether the stages' layers follow from the rest.
bool divides_by_itself(const PlanSpec& spec, const Plan& base) {
  const FrameworkTraits& framework = traits_of(base.training.framework);
  return spec.says(paths::kLayersPerStage) || framework.stages_by_cost || framework.torch_pipeline;
}

int64_t value_in(const PlanEdits& edits, const PlanSpec& spec, const char* path, int64_t usual) {
  for (const PlanEdit& edit : edits) {
    if (edit.path == path) return edit.value.json().get<int64_t>();
  }
  const Json said = spec.said(path);
  return said.is_number_integer() ? said.get<int64_t>() : usual;
}

/// What can be told without the rules, which take longer: "" or what is wrong.
const char* obvious_problem(const PlanEdits& edits,
                            const PlanSpec& spec,
                            const Plan& base,
                            int64_t gpus) {
  const int64_t stages = value_in(edits, spec, paths::kPipeline, 1);
  const int64_t ranks =
      value_in(edits, spec, paths::kTensor, 1) * value_in(edits, spec, paths::kContext, 1) * stages;
  if (gpus % ranks != 0) return "tensor x context x pipeline does not divide the GPUs";
  const int64_t pieces = stages * value_in(edits, spec, paths::kVirtual, 1);
  if (base.model.num_layers % pieces != 0 && !divides_by_itself(spec, base) &&
      layers_beside_ends(base.model, pieces).empty()) {
    return "stages do not divide the layers";
  }
  if (pieces > 1 && stages == 1) return "virtual stages without a pipeline";
  const int64_t samples = value_in(edits, spec, paths::kMicroBatch, 1) * (gpus / ranks);
  if (base.global_batch_size() % samples != 0) {
    return "micro-batch x data ranks does not divide the global batch";
  }
  return "";
}

/// Tensor ranks share the norms too: it costs nothing and saves memory, and experts need it.
void add_sequence_parallelism(const PlanSpec& spec, PlanEdits& edits) {
  if (spec.says(paths::kSequenceParallel) || value_in(edits, spec, paths::kTensor, 1) == 1) return;
  edits.push_back({paths::kSequenceParallel, true});
}

void add_uneven_layers(const PlanSpec& spec, const Plan& base, PlanEdits& edits) {
  const int64_t pieces =
      value_in(edits, spec, paths::kPipeline, 1) * value_in(edits, spec, paths::kVirtual, 1);
  if (base.model.num_layers % pieces == 0 || divides_by_itself(spec, base)) return;
  edits.push_back({paths::kLayersPerStage, layers_beside_ends(base.model, pieces)});
}

/// The data ranks' exchange of each step goes beside the work, where the framework can and nobody
/// said otherwise. Gathers that would come one stage after the other cost time instead.
void add_overlap(const PlanSpec& spec, const Plan& base, int64_t gpus, PlanEdits& edits) {
  const bool is_said = spec.says(paths::kOverlapReduce) || spec.says(paths::kOverlapGather);
  if (is_said || !traits_of(base.training.framework).overlap_flags) return;
  Plan layout = base;
  ParallelConfig& p = layout.parallelism;
  p.zero_stage = value_in(edits, spec, paths::kZeroStage, p.zero_stage);
  p.pipeline = value_in(edits, spec, paths::kPipeline, 1);
  p.virtual_stages = value_in(edits, spec, paths::kVirtual, 1);
  const int64_t tensor = value_in(edits, spec, paths::kTensor, 1);
  if (layout.fully_sharded() || tensor * p.pipeline == gpus) return;
  edits.push_back({paths::kOverlapReduce, true});
  if (p.zero_stage == 0 || gathers_in_turn(layout)) return;
  edits.push_back({paths::kOverlapGather, true});
}

}  // namespace

ExecutedLayout executed_layout(const ClusterEstimate& estimate) {
  int64_t allocated = 0;
  for (const RankClassEstimate& row : estimate.rank_classes) {
    allocated = std::max(allocated, row.allocated_peak_bytes);
  }
  return {.allocated_bytes = allocated,
          .peak_bytes = estimate.verdict.peak_bytes,
          .outcome = estimate.verdict.outcome,
          .iteration_seconds = estimate.time.iteration_seconds,
          .tokens_per_second = estimate.throughput.tokens_per_second,
          .mfu = estimate.throughput.mfu};
}

double Layout::seconds_per_token() const {
  const double seconds =
      executed ? executed->iteration_seconds : composed->time.value().iteration_seconds;
  return seconds / static_cast<double>(plan.tokens_per_step());
}

void Refusals::add(const Refusals& others) {
  for (const auto& [what, count] : others.counts) counts[what] += count;
}

int64_t Refusals::sum() const {
  int64_t sum = 0;
  for (const auto& [what, count] : counts) sum += count;
  return sum;
}

namespace {

/// What a layout is over one GPU with one data rank.
const PlanEdits& degrees_of_one_gpu() {
  static const PlanEdits edits = {{paths::kTensor, 1},
                                  {paths::kPipeline, 1},
                                  {paths::kContext, 1},
                                  {paths::kExpert, 1},
                                  {paths::kVirtual, 1},
                                  {paths::kData, "auto"},
                                  {paths::kSequenceParallel, false},
                                  {paths::kLayersPerStage, Json::array()}};
  return edits;
}

/// One GPU with one data rank, which is its own replica.
PlanSpec alone(const PlanSpec& spec) {
  PlanSpec alone = spec.with(
      merged(degrees_of_one_gpu(),
             {{paths::kNodes, 1}, {paths::kGpusPerNode, 1}, {paths::kOptimizerInstances, 1}}));
  alone.context.world_size.reset();
  return alone;
}

bool is_degree(const std::string& path) {
  const PlanEdits& degrees = degrees_of_one_gpu();
  return std::any_of(
      degrees.begin(), degrees.end(), [&](const PlanEdit& edit) { return edit.path == path; });
}

/// All choices of the listed values that say more than degrees, and so what the degrees may be.
std::vector<PlanEdits> choices_beside_degrees(const std::vector<SearchAxis>& listed) {
  std::vector<std::vector<PlanEdit>> choices;
  for (const SearchAxis& axis : listed) {
    if (is_degree(axis.path)) continue;
    std::vector<PlanEdit>& of_axis = choices.emplace_back();
    for (const Json& value : axis.values) of_axis.push_back({axis.path, value});
  }
  return combinations(choices);
}

/// The listed axes, of which those that are chosen have one value.
std::vector<SearchAxis> with_choice(std::vector<SearchAxis> listed, const PlanEdits& choice) {
  for (SearchAxis& axis : listed) {
    for (const PlanEdit& edit : choice) {
      if (edit.path == axis.path) axis.values = {edit.value.json()};
    }
  }
  return listed;
}

std::optional<Plan> allowed_plan(const PlanSpec& spec) {
  try {
    return resolve_plan(spec);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// Those that the rules allow in the framework of `base`.
std::vector<Json> zero_stages(const PlanSpec& spec, const Plan& base) {
  std::vector<Json> stages;
  for (int64_t stage = 0; stage <= kMostZeroStages; ++stage) {
    const std::optional<Plan> plan = allowed_plan(alone(spec).with({{paths::kZeroStage, stage}}));
    if (plan && plan->training.framework == base.training.framework) stages.emplace_back(stage);
  }
  return stages;
}

/// With the least ZeRO stage that the framework has, where none is said: DeepSpeed's has no 0.
Plan plan_alone(const PlanSpec& spec) {
  const PlanSpec one = alone(spec);
  const bool is_open = spec.says(paths::kFramework) && !spec.says(paths::kZeroStage);
  for (int64_t stage = 0; is_open && stage <= kMostZeroStages; ++stage) {
    if (auto plan = allowed_plan(one.with({{paths::kZeroStage, stage}}))) return *plan;
  }
  return resolve_plan(one);
}

template <class Axes>
auto find_axis(Axes& axes, const std::string& path) {
  return std::find_if(
      axes.begin(), axes.end(), [&](const SearchAxis& axis) { return axis.path == path; });
}

}  // namespace

Plan searched_plan(const PlanSpec& spec) {
  if (!spec.says(paths::kGlobalBatch)) {
    throw UserError({.what = "the global batch is not given, and layouts are compared by the time "
                             "that they take for it",
                     .where = spec.context.origin,
                     .help = "give --global-batch-size"});
  }
  if (spec.says(paths::kAccumulation)) {
    throw UserError({.what = "the layouts of a search accumulate as often as their ranks need",
                     .where = fmt::format("--gradient-accumulation-steps = {}",
                                          spec.said(paths::kAccumulation).dump()),
                     .help = "give --gradient-accumulation-steps auto"});
  }
  return plan_alone(spec);
}

std::vector<Plan> searched_plans(const PlanSpec& spec, const std::vector<SearchAxis>& listed) {
  std::vector<Plan> plans;
  std::optional<UserError> first_error;
  for (const PlanEdits& choice : choices_beside_degrees(listed)) {
    try {
      plans.push_back(searched_plan(spec.with(choice)));
    } catch (const UserError& error) {
      if (!first_error) first_error = error;
    }
  }
  if (plans.empty()) throw UserError(*first_error);
  return plans;
}

int64_t gpus_of_machine(const PlanSpec& spec) {
  constexpr int64_t kUsual = 8;
  const Json said = spec.said(paths::kGpusPerNode);
  return said.is_number_integer() ? said.get<int64_t>() : kUsual;
}

std::string quick_pieces_key(const Layout& layout) {
  std::string key = layout.plan.parallelism.pipeline == 1 ? "one stage" : "stages";
  if (data_ranks_change_pieces(layout.plan))
    key += fmt::format(", data {}", layout.plan.data_parallel_size());
  for (const PlanEdit& edit : layout.edits) {
    const bool is_of_pipeline = edit.path == paths::kPipeline || edit.path == paths::kVirtual ||
                                edit.path == paths::kLayersPerStage;
    if (is_of_pipeline) continue;
    key += fmt::format(", {} {}", edit.path, edit.value.json().dump());
  }
  return key;
}

std::vector<SearchAxis> search_axes(const PlanSpec& spec,
                                    int64_t gpus,
                                    const std::vector<SearchAxis>& listed) {
  const Plan base = searched_plan(spec);
  std::vector<Json> recompute = {"none", "full"};
  // It saves nothing where the attention kernel does it.
  if (base.training.attention == Attention::kUnfused ||
      base.training.framework == Framework::kTorchtitan) {
    recompute.insert(recompute.begin() + 1, "selective");
  }
  std::vector<SearchAxis> axes = {
      {paths::kTensor, doubled_up_to(std::min(gpus_of_machine(spec), gpus))},
      {paths::kContext, doubled_up_to(std::min(most_context_ranks(base.sequence_length()), gpus))},
      {paths::kExpert, doubled_up_to(base.model.has_experts() ? base.model.num_experts : 1)},
      {paths::kZeroStage, zero_stages(spec, base)},
      {paths::kMicroBatch, doubled_up_to(kLargestMicroBatch)},
      {paths::kRecompute, std::move(recompute)},
      {paths::kPipeline,
       divides_by_itself(spec, base) ? divisors(gpus, base.model.num_layers)
                                     : numbers_of_pieces(base.model, gpus)},
      {paths::kVirtual, numbers_of_pieces(base.model, base.model.num_layers)}};
  for (const SearchAxis& axis : listed) {
    const auto same = find_axis(axes, axis.path);
    same == axes.end() ? axes.push_back(axis) : void(same->values = axis.values);
  }
  std::erase_if(axes, [&](const SearchAxis& axis) {
    const bool is_listed = find_axis(listed, axis.path) != listed.end();
    return !is_listed && (spec.says(axis.path) || axis.values.size() < 2);
  });
  return axes;
}

Layouts allowed_layouts(const PlanSpec& spec,
                        const std::vector<SearchAxis>& axes,
                        int64_t gpus,
                        const std::function<void(int64_t)>& seen) {
  const Plan base = searched_plan(spec);
  PlanSpec open = spec.with({{paths::kNodes, "auto"}});
  open.context.world_size = gpus;
  open.context.world_size_origin = "--gpus";
  Layouts layouts;
  std::vector<std::vector<PlanEdit>> choices;
  for (const SearchAxis& axis : axes) {
    std::vector<PlanEdit>& of_axis = choices.emplace_back();
    for (const Json& value : axis.values) of_axis.push_back({axis.path, value});
  }
  const bool opens_data = open.says(paths::kData) && find_axis(axes, paths::kData) == axes.end();
  std::vector<PlanEdits> all = combinations(choices);
  for (PlanEdits& edits : all) {
    if (seen) seen(std::ssize(all));
    if (const char* problem = obvious_problem(edits, open, base, gpus); *problem != '\0') {
      ++layouts.refused.counts[problem];
    } else {
      add_sequence_parallelism(open, edits);
      add_uneven_layers(open, base, edits);
      add_overlap(open, base, gpus, edits);
      if (opens_data) edits.push_back({paths::kData, "auto"});
      try {
        Plan plan = resolve_plan(open.with(edits));
        if (const std::string obstacle = obstacle_of_layout(plan); !obstacle.empty()) {
          ++layouts.refused.counts[obstacle];
          continue;
        }
        layouts.allowed.push_back({.edits = std::move(edits), .plan = std::move(plan)});
      } catch (const UserError& error) {
        ++layouts.refused.counts[error.problems().front().what];
      }
    }
  }
  return layouts;
}

Layouts searched_layouts(const PlanSpec& spec,
                         const std::vector<SearchAxis>& listed,
                         int64_t gpus,
                         const std::function<void(int64_t)>& seen) {
  Layouts all;
  int64_t before = 0, of_choice = 0;
  const auto count = [&](int64_t layouts) {
    of_choice = layouts;
    if (seen) seen(before + layouts);
  };
  for (const PlanEdits& choice : choices_beside_degrees(listed)) {
    try {
      const PlanSpec chosen = spec.with(choice);
      const auto axes = search_axes(chosen, gpus, with_choice(listed, choice));
      Layouts layouts = allowed_layouts(chosen, axes, gpus, count);
      std::move(layouts.allowed.begin(), layouts.allowed.end(), std::back_inserter(all.allowed));
      all.refused.add(layouts.refused);
    } catch (const UserError& error) {
      ++all.refused.counts[error.problems().front().what];
    }
    before += std::exchange(of_choice, 0);
  }
  return all;
}

}  // namespace estimator
