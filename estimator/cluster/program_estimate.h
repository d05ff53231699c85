// The memory of a cluster on which a program runs that no plan describes, from profiles of some of
// its ranks (`onerank exec`). Time is not estimated: nobody said what the ranks wait for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document.h"
#include "estimator/base/errors.h"
#include "estimator/cluster/cluster_estimate.h"
#include "estimator/hardware/hardware.h"
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

/// Bytes that a rank's GPU lacks before PyTorch's allocator takes any: the CUDA context and CUDA's
/// libraries, as estimate_program() counts them. NCCL's buffers come with the communicators.
int64_t program_outside_bytes(const Gpu& gpu);

/// Why nothing can be said of whether the program's rank fits, and the way out: it was not
/// followed, stepped no optimizer, allocated nothing, had most of its memory on a device that was
/// not followed, or ran on a GPU that is not in the database. Empty where a verdict can be given; a
/// rank that ran out of memory always has one.
std::optional<Problem> lacks_verdict(const RankProfile& profile);

/// Whether the rank ran out of memory while the limit was there, and where: "rank 3 ran out of
/// 79.19 GiB in build_model: 1.00 GiB were asked for, 0.40 GiB were free".
std::optional<std::string> ran_out(const RankProfile& profile);

/// Throws UserError when the profiles are not of one program, world and GPU, or the GPU is not in
/// the database, and (this machine lacks something) when one of them lacks a verdict.
ProgramEstimate estimate_program(const std::vector<RankProfile>& profiles);

}  // namespace estimator
