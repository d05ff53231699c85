// The memory of a cluster on which a program runs that no plan describes, from profiles of some of
// its ranks (`onerank exec`). Time is not estimated: nobody said what the ranks wait for.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/document.h"
#include "estimator/cluster/cluster_estimate.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

struct ProgramEstimate {
  DocumentHead head{kEstimateSchemaVersion, "program_estimate"};
  ToolVersion tool;
  std::vector<std::string> command;
  int64_t world_size = 1;
  Verdict verdict;
  std::vector<RankClassEstimate> ranks;
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramEstimate& estimate) {
  visit_head(visit, estimate.head);
  visit("tool", estimate.tool, "who made the profiles");
  visit("command", estimate.command, "the program and its arguments");
  visit("world_size", estimate.world_size, "of the simulated world");
  visit("verdict", estimate.verdict, "whether the ranks that were run fit");
  visit("ranks", estimate.ranks, "each rank that was run");
  visit("assumptions", estimate.assumptions, "what was assumed");
  visit("not_modelled", estimate.not_modelled, "what is left out");
}

/// Throws UserError when the profiles are not of one program, world and GPU, or the GPU is not in
/// the database.
ProgramEstimate estimate_program(const std::vector<RankProfile>& profiles);

}  // namespace estimator
