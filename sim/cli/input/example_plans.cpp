#include "sim/cli/input/example_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/torch/installation.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

ExamplePlan described(const fs::path& file) {
  const std::string origin = file.string();
  const estimator::Plan plan = estimator::resolve_plan(
      estimator::parse_json(estimator::read_file(origin), origin), {.origin = origin});
  const estimator::ParallelConfig& sizes = plan.parallelism;
  return {.name = file.stem().string(),
          .model = plan.model_preset,
          .gpus = plan.world_size(),
          .gpu = plan.cluster.gpu,
          .parallelism = fmt::format("tensor {} x pipeline {} x context {} x data {}",
                                     sizes.tensor,
                                     sizes.pipeline,
                                     sizes.context,
                                     sizes.data.value()),
          .framework = estimator::to_string(plan.training.framework)};
}

}  // namespace

std::vector<ExamplePlan> example_plans() {
  std::vector<ExamplePlan> plans;
  for (const fs::directory_entry& entry : fs::directory_iterator(built_with().plans)) {
    if (entry.path().extension() == ".json") plans.push_back(described(entry.path()));
  }
  std::sort(plans.begin(), plans.end(), [](const ExamplePlan& left, const ExamplePlan& right) {
    return left.name < right.name;
  });
  return plans;
}

std::string find_example_plan(const std::string& name) {
  if (name.find('/') != name.npos) return "";
  const fs::path file = built_with().plans / (name + ".json");
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? file.string() : "";
}

}  // namespace sim
