#include "sim/cli/commands/written_plan.h"

#include <array>

#include "estimator/base/fields.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/option_paths.h"

namespace sim {
namespace {

using estimator::Json;

constexpr const char* kSource = "--write-plan";
constexpr std::array kOfTheWorld = {
    estimator::paths::kNodes, estimator::paths::kGpusPerNode, estimator::paths::kGlobalBatch};

}  // namespace

Json written_plan(const estimator::PlanSpec& spec, const std::string& calibration_file) {
  const Json resolved = to_json(resolve_plan(spec));
  Json tree = spec.tree.json();
  if (spec.derive_keys) spec.derive_keys(tree);
  for (const char* path : kOfTheWorld) {
    if (spec.says(path)) continue;
    estimator::set_in_tree(tree, path, estimator::find_in_tree(resolved, path), kSource);
  }
  if (!calibration_file.empty()) {
    estimator::set_in_tree(tree, "time.calibration", calibration_file, kSource);
  }
  return tree;
}

}  // namespace sim
