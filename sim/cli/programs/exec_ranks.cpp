#include "sim/cli/programs/exec_ranks.h"

#include <algorithm>
#include <iterator>

#include "estimator/program/program_ranks.h"

namespace sim {
namespace {

using estimator::RankProfile;

/// Of a program whose own launcher decides its world, that world is known when a rank has run.
int64_t world_of(const ExecJob& job, const std::vector<RankProfile>& profiles) {
  return job.world_is_given || profiles.empty() ? job.world_size : profiles.front().world_size;
}

std::vector<int64_t> ranks_after(const ExecJob& job, const std::vector<RankProfile>& profiles) {
  constexpr int64_t kMostFound = 64;
  return estimator::ranks_to_run_next(profiles, world_of(job, profiles), kMostFound);
}

std::vector<RankProfile> exec_at_once(const ExecJob& job,
                                      const std::vector<int64_t>& ranks,
                                      const SideBySide& how,
                                      const Environment& environment,
                                      const Interrupts& interrupts) {
  if (!job.peers_folder.empty()) {
    return exec_side_by_side(job, ranks, how, environment, interrupts);
  }
  std::vector<RankProfile> profiles = {exec_rank(job, ranks.front(), environment, interrupts)};
  how.on_rank(profiles.front(), "");
  return profiles;
}

}  // namespace

std::vector<RankProfile> exec_ranks(const ExecJob& job,
                                    const RanksToExec& ranks,
                                    const SideBySide& how,
                                    const Environment& environment,
                                    const Interrupts& interrupts) {
  std::vector<RankProfile> profiles;
  std::vector<int64_t> next = ranks.are_found ? ranks_after(job, profiles) : ranks.named;
  while (!next.empty()) {
    std::ranges::move(exec_at_once(job, next, how, environment, interrupts),
                      std::back_inserter(profiles));
    next = ranks.are_found ? ranks_after(job, profiles) : std::vector<int64_t>();
  }
  std::ranges::sort(profiles, {}, &RankProfile::rank);
  return profiles;
}

}  // namespace sim
