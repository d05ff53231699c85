#include "tests/fuzz/plan_uses.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/cluster/rank_classes.h"
#include "estimator/communication/fabric.h"
#include "estimator/resolve/resolve_plan.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

using estimator::Json;
using estimator::Plan;

void use_plan(const Json& tree) {
  use_resolved_plan(estimator::resolve_plan(tree, {.origin = "plan"}));
}

void use_resolved_plan(const Plan& plan) {
  const Json document = estimator::to_json(plan);
  expect_written_whole(document, "the resolved plan");
  const Json again = estimator::to_json(estimator::resolve_plan(document, {.origin = "again"}));
  if (again != document) {
    fail("a resolved plan resolves to another one: " + Json::diff(document, again).dump());
  }
  int64_t ranks = 0;
  for (const estimator::RankClass& ranks_alike : estimator::rank_classes(plan)) {
    ranks += ranks_alike.count;
  }
  if (ranks != plan.world_size()) {
    fail(fmt::format("classes of {} ranks in a world of {}", ranks, plan.world_size()));
  }
  if (plan.cluster.nccl_tests.empty()) estimator::fabric_of(plan);
  for (int64_t stage = 0; stage < std::min<int64_t>(plan.parallelism.pipeline, 4); ++stage) {
    plan.expert_layers_of_stage(stage);
  }
}

}  // namespace fuzz
