// The documents of `onerank list NAMES --json`.
#pragma once

#include <vector>

#include "estimator/base/document.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/model_options.h"
#include "estimator/plan/option_table.h"
#include "sim/cli/input/example_plans.h"
#include "sim/cli/torch/torch_stubs.h"

namespace sim {

/// A list of names that plans can use: GPUs, models, ...
template <class Entry>
struct ListDocument {
  estimator::DocumentHead head;
  std::vector<Entry> entries;
};
template <class Visitor, class Entry>
void visit_fields(Visitor& visit, ListDocument<Entry>& list) {
  visit_head(visit, list.head);
  visit("entries", list.entries, "each that is known");
}

ListDocument<estimator::Gpu> gpu_list();
ListDocument<estimator::ModelPreset> model_list();
ListDocument<estimator::Link> link_list();
ListDocument<estimator::FrameworkTraits> framework_list();
ListDocument<estimator::PlanOption> option_list();
ListDocument<ExamplePlan> plan_list();
ListDocument<SupportedTorch> torch_list();

}  // namespace sim
