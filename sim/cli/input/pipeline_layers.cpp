#include "sim/cli/input/pipeline_layers.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <optional>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/range.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/sized_model.h"
#include "sim/cli/values/pipeline_layout.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::find_in_tree;
using estimator::Json;
using estimator::set_in_tree;
using estimator::UserError;

constexpr const char* kFirst = "--decoder-first-pipeline-num-layers";
constexpr const char* kLast = "--decoder-last-pipeline-num-layers";
constexpr const char* kPerVirtual = "--num-layers-per-virtual-pipeline-stage";
constexpr const char* kLayersPath = "parallelism.layers_per_stage";
constexpr const char* kVirtualPath = "parallelism.virtual_stages";

std::optional<int64_t> whole_number(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

std::optional<int64_t> layers_of(const Json& tree) {
  return estimator::number_of_model(tree, "num_layers", &estimator::ModelConfig::num_layers);
}

int64_t predictions_of(const Json& tree) {
  return estimator::number_of_model(tree, "mtp_num_layers", &estimator::ModelConfig::mtp_num_layers)
      .value_or(0);
}

/// One, unless the plan says otherwise. Nothing where what it says is no number.
std::optional<int64_t> stages_of(const Json& tree) {
  const Json stages = find_in_tree(tree, "parallelism.pipeline");
  return stages.is_null() ? 1 : whole_number(stages);
}

std::optional<int64_t> parse_if_given(const std::string& text, const char* flag) {
  if (text.empty()) return std::nullopt;
  const int64_t layers = parse_whole_number(text, flag);
  // __post_init__() in megatron/core/transformer/transformer_config.py
  estimator::require_in_range(
      layers, {.least = 1, .example = "--num-layers-per-stage 0,8,8,8 has stages without"}, flag);
  return layers;
}

/// The layers of each stage, when what is left for the stages without a number divides by them.
std::optional<std::vector<int64_t>> spread(int64_t layers,
                                           int64_t stages,
                                           std::optional<int64_t> first,
                                           std::optional<int64_t> last) {
  for (const int64_t given : {first.value_or(0), last.value_or(0)}) {
    if (given > layers) return std::nullopt;
  }
  const int64_t left = layers - first.value_or(0) - last.value_or(0);
  const int64_t others = stages - (first ? 1 : 0) - (last ? 1 : 0);
  const bool divides = others > 0 ? left % others == 0 : others == 0 && left == 0;
  if (left < 0 || !divides) return std::nullopt;
  std::vector<int64_t> spread;
  if (first) spread.push_back(*first);
  for (int64_t i = 0; i < others; ++i) spread.push_back(left / others);
  if (last) spread.push_back(*last);
  return spread;
}

[[noreturn]] void refuse_both(const std::string& flag, const std::string& other) {
  throw UserError({.what = "the layers of the stages are given twice",
                   .where = fmt::format("{} and {}", flag, other),
                   .help = "keep one of the two"});
}

void refuse_twice(const Json& tree, const char* path, const char* flag) {
  const Json said = find_in_tree(tree, path);
  if (said.is_null() || (said.is_array() && said.empty())) return;
  refuse_both(flag, path);
}

}  // namespace

void PipelineLayers::add_to(CLI::App& app) {
  constexpr const char* kGroup = "Parallelism";
  app.add_option(kFirst, first_, "layers of the first stage")->type_name("N")->group(kGroup);
  app.add_option(kLast, last_, "layers of the last stage")->type_name("N")->group(kGroup);
  app.add_option(kPerVirtual, per_virtual_, "layers of each virtual stage (interleaving)")
      ->type_name("N")
      ->group(kGroup);
  app.add_option(kPipelineLayoutFlag, layout_, "what each stage holds, such as \"Et*3|(tt|)*6L\"")
      ->type_name("TEXT")
      ->group(kGroup);
}

void PipelineLayers::set(const std::string& flag, const std::string& value) {
  if (flag == kFirst) first_ = value;
  if (flag == kLast) last_ = value;
  if (flag == kPerVirtual) per_virtual_ = value;
  if (flag == kPipelineLayoutFlag) layout_ = value;
}

std::string PipelineLayers::given() const {
  if (!first_.empty()) return kFirst;
  if (!last_.empty()) return kLast;
  if (!per_virtual_.empty()) return kPerVirtual;
  return layout_.empty() ? "" : kPipelineLayoutFlag;
}

void PipelineLayers::refuse_given_twice(const Json& tree) const {
  if (!layout_.empty()) {
    if (given() != kPipelineLayoutFlag) refuse_both(given(), kPipelineLayoutFlag);
    refuse_twice(tree, kVirtualPath, kPipelineLayoutFlag);
    refuse_twice(tree, kLayersPath, kPipelineLayoutFlag);
  }
  if (!per_virtual_.empty()) refuse_twice(tree, kVirtualPath, kPerVirtual);
  if (!first_.empty() || !last_.empty()) {
    refuse_twice(tree, kLayersPath, first_.empty() ? kLast : kFirst);
  }
}

void PipelineLayers::overlay(Json& tree) const {
  if (!any_given()) return;
  const auto layers = layers_of(tree);
  const auto stages = stages_of(tree);
  constexpr int64_t kMostStages = 1'000'000;
  refuse_given_twice(tree);
  if (!layers || !stages || *stages < 1 || *stages > kMostStages) return;
  if (!per_virtual_.empty()) overlay_virtual(tree, *layers, *stages);
  if (!first_.empty() || !last_.empty()) overlay_uneven(tree, *layers, *stages);
  if (!layout_.empty()) overlay_layout(tree, *layers, *stages);
}

void PipelineLayers::overlay_uneven(Json& tree, int64_t layers, int64_t stages) const {
  const auto layers_per_stage =
      spread(layers, stages, parse_if_given(first_, kFirst), parse_if_given(last_, kLast));
  if (!layers_per_stage) {
    const auto shown = [](const std::string& text) {
      return text.empty() ? "as the others" : text;
    };
    throw UserError({.what = "the other stages do not split the other layers evenly",
                     .where = fmt::format("{} layers, {} stages; first stage {}, last stage {}",
                                          layers,
                                          stages,
                                          shown(first_),
                                          shown(last_)),
                     .help = "give --num-layers-per-stage 7,8,8,7: one number for each stage"});
  }
  set_in_tree(tree, kLayersPath, *layers_per_stage, kFirst);
}

void PipelineLayers::overlay_virtual(Json& tree, int64_t layers, int64_t stages) const {
  const int64_t size = parse_whole_number(per_virtual_, kPerVirtual);
  if (size < 1 || layers % stages != 0 || layers / stages % size != 0) {
    throw UserError(
        {.what = "virtual stages of this size do not split the layers of a stage",
         .where = fmt::format("{} = {}; {} layers, {} stages", kPerVirtual, size, layers, stages),
         .help = "give --num-virtual-stages-per-pipeline-rank, and --num-layers-per-stage with one "
                 "number for each stage or virtual stage"});
  }
  set_in_tree(tree, kVirtualPath, layers / stages / size, kPerVirtual);
}

void PipelineLayers::overlay_layout(Json& tree, int64_t layers, int64_t stages) const {
  const std::vector<int64_t> of_stage =
      layers_of_layout(layout_, {.layers = layers, .predictions = predictions_of(tree)}, stages);
  set_in_tree(tree, kLayersPath, of_stage, kPipelineLayoutFlag);
  set_in_tree(
      tree, kVirtualPath, static_cast<int64_t>(of_stage.size()) / stages, kPipelineLayoutFlag);
}

}  // namespace sim
