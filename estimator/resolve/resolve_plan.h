// What was said becomes what is meant: reading, defaults, and the rules that a plan must keep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/json.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// What the environment or flags say in addition to the plan.
struct PlanContext {
  std::string origin = "plan";        ///< names the document in messages
  std::optional<int64_t> world_size;  ///< WORLD_SIZE or --world-size
  std::string world_size_origin = "WORLD_SIZE";
};

/// Reads a plan from its tree and resolves it. Throws UserError with every problem found.
Plan resolve_plan(const Json& tree, const PlanContext& context);

/// Throws UserError if a tree cannot be read as a plan, or has numbers that are out of range for
/// any plan. Its values may contradict each other, which the rules of resolve_plan() find.
void check_readable(const Json& tree, const PlanContext& context);

/// Resolves the "cluster" of a plan by itself, for questions about collectives: one machine of
/// eight GPUs unless it says otherwise. Throws UserError with every problem found.
ClusterConfig resolve_cluster(const Json& cluster, const std::string& origin);

}  // namespace estimator
