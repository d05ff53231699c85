// Which ranks of a program have to be run, and which of those that were run are replayed together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Whether the two ranks do the same in their recorded iteration, in as many calls, with the same
/// peaks of memory. With whom they communicate may differ.
bool are_alike(const RankProfile& a, const RankProfile& b);

/// The ranks whose traces can be replayed together: all but those that wait for messages of ranks
/// that were not run, and are alike a rank that does not. Empty if one of the others waits so, or
/// a rank has no trace, or one without the backward of the program; then `why` says so, and the way
/// out.
std::vector<const RankProfile*> ranks_to_replay(const std::vector<RankProfile>& profiles,
                                                std::string& why);

/// One of the ranks between the first and the last, drawn by lot; always the same of a world size.
/// Empty if there is none.
std::optional<int64_t> drawn_rank(int64_t world_size);

/// The ranks to be run after those of `profiles`, in ascending order; empty when these are enough.
/// First rank 0 and two probes: the last rank, which has another place along every axis, and the
/// drawn one; then everyone for whom rank 0 waits. If a probe is like none of these, those that it
/// waits for are run, and one rank in the middle. No more than `most` ranks are asked for in all.
std::vector<int64_t> ranks_to_run_next(const std::vector<RankProfile>& profiles,
                                       int64_t world_size,
                                       int64_t most);

}  // namespace estimator
