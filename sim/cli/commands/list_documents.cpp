#include "sim/cli/commands/list_documents.h"

namespace sim {

ListDocument<estimator::Gpu> gpu_list() {
  return {.head = {1, "gpu_list"}, .entries = estimator::gpus()};
}

ListDocument<estimator::ModelPreset> model_list() {
  return {.head = {1, "model_list"}, .entries = estimator::model_presets()};
}

ListDocument<estimator::Link> link_list() {
  return {.head = {1, "link_list"}, .entries = estimator::links()};
}

ListDocument<estimator::FrameworkTraits> framework_list() {
  return {.head = {1, "framework_list"}, .entries = estimator::frameworks()};
}

ListDocument<estimator::PlanOption> option_list() {
  return {.head = {1, "option_list"}, .entries = estimator::plan_options()};
}

ListDocument<ExamplePlan> plan_list() {
  return {.head = {1, "plan_list"}, .entries = example_plans()};
}

ListDocument<SupportedTorch> torch_list() {
  return {.head = {1, "torch_list"}, .entries = supported_torch()};
}

}  // namespace sim
