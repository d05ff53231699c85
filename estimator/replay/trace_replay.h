// Plays the traces of some ranks of a program: when each work begins and ends.
//
// A rank has a host and streams. The host issues the events of its trace one after the other, each
// at its cost, and stops only where it waits. A stream does what it was given in order. Rules:
//   - a work begins when its stream is free, the host has issued it, and, for NCCL, the call before
//     it on the same communicator has ended;
//   - a collective begins at the same time on all its members that are played;
//   - a message begins when both its ends have come to it; a group of messages begins with its
//   last;
//   - a stream that waits for a record does nothing until the work before that record is done.
// Ranks that are not played come to a collective as late as the ranks that are.
//
// What runs at the same time on one GPU shares it. Kernels that together need more multiprocessors
// than there are slow each other alike. Of these, what NCCL occupies is taken from the kernels that
// are bound by arithmetic. Persistent products (work_price.h) do not give way: blocks that find no
// room as the product begins wait until NCCL or the first blocks are done. Calls of NCCL share each
// port fairly. Kernels and NCCL share the memory's bandwidth: what needs less than an equal part
// has what it needs. The switches between the GPUs are not shared.
//
// The recorded iteration is played several times in a row. An event that waits for a record of the
// iteration before waits for the same record there, so that the last iteration is a steady one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "estimator/compute/gpu_rates.h"
#include "estimator/compute/host_rates.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/replay/work_price.h"

namespace estimator {

/// One rank to be played. All pointers must outlive the replay.
struct ReplayRank {
  const RankProfile* profile = nullptr;  ///< with a trace
  std::vector<WorkPrice> prices;         ///< of its works
  /// What the host needs for each event, after what it waits for; empty: the launch cost of the
  /// event's HostIssue and operators.
  std::vector<double> issue_seconds = {};
  CpuOptimizerRate cpu_optimizer = {};  ///< of traces with TraceEventKind::kHostUpdates
  double host_lead_seconds = 0;         ///< by which the host begins before its GPU
  /// Until the third iteration everything that one iteration leaves to the next has settled.
  int64_t iterations = 3;
  /// Of a single iteration, the last event whose work is asked for: with these works the replay
  /// ends, and what it gives of later ones means nothing. Empty: with all works.
  std::optional<int64_t> last_event = {};
};

/// How long the host needs for an update of this event of its trace; 0 for other events.
double update_seconds(const ReplayRank& rank, int64_t event);

/// A work of the last iteration, in seconds since the start of the replay.
struct PlayedWork {
  int64_t event = 0;  ///< place in the trace's events
  double issued = 0;  ///< when the host had asked for it
  double start = 0;
  double end = 0;
};

struct PlayedRank {
  double iteration_start =
      0;  ///< when the last iteration begins: the one before, if any, has ended
  double iteration_end = 0;
  double host_seconds = 0;        ///< the host's issuing in one iteration, without waiting
  std::vector<PlayedWork> works;  ///< in the order in which the host issued them

  double iteration_seconds() const { return iteration_end - iteration_start; }
};

/// Throws UserError when the ranks wait for each other for ever, or come to one collective with
/// different sizes; it names the calls.
std::vector<PlayedRank> replay(const std::vector<ReplayRank>& ranks, const LaunchCost& launch);

/// A rank that has to be played too, because `rank` waits for its messages, and nobody can say when
/// they come. A communicator on which every group of messages has as many sends as receives (a ring
/// of context ranks, an all-to-all of experts) needs no others: its members do the same.
struct MissingPeer {
  int64_t rank = 0;
  int64_t peer = 0;
  RankGroup group;  ///< of the communicator; its members wait for each other in turn
};
std::vector<MissingPeer> missing_peers(const std::vector<const RankProfile*>& ranks);

/// The ranks with which `profile`'s rank has messages that are no exchange, by the number of the
/// communicator.
std::map<int64_t, std::set<int64_t>> ranks_of_messages(const RankProfile& profile);

}  // namespace estimator
