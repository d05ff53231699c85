// The ranks of a program that can be replayed together, priced and played.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/compute/calibration.h"
#include "estimator/replay/trace_replay.h"

namespace estimator {

/// Where a program runs. `calibration` is of this GPU, or null; all must outlive what is made of
/// it.
struct ProgramPlace {
  const Gpu& gpu;
  Fabric fabric;
  const Calibration* calibration = nullptr;
  std::optional<double> gpu_deviation = std::nullopt;  ///< empty: the usual one (gpu_variation.h)
};

/// A part of the time of a replay, in seconds since its start.
struct ReplaySpan {
  double begin = 0;
  double end = 0;
  double seconds() const { return end - begin; }
};

struct ProgramReplay {
  /// The profiles lack no time (program_time.h), and must outlive the replay. Throws UserError when
  /// the ranks wait for each other for ever.
  ProgramReplay(const std::vector<RankProfile>& profiles, const ProgramPlace& place);

  GpuRates rates;
  Fabric fabric;
  std::vector<ReplayRank> ranks;   ///< at least one
  std::vector<PlayedRank> played;  ///< of each rank
  std::vector<BoardUse> boards;    ///< of each rank

  /// Of the rank that takes longest.
  double iteration_seconds() const;
  /// The last iteration of all ranks, from the first begin to the last end. The stages of a
  /// pipeline begin and end it one after the other, so that this is longer than one iteration.
  ReplaySpan span() const;
};

/// Its operator, or the kernel without template arguments.
std::string short_name(const TraceWork& work);

/// A work that was played, with what is known of it.
const TraceWork& work_of(const ReplayRank& rank, const PlayedWork& played);
const WorkPrice& price_of(const ReplayRank& rank, const PlayedWork& played);
Direction direction_of(const ReplayRank& rank, const PlayedWork& played);
const std::string& module_of(const ReplayRank& rank, const PlayedWork& played);
int64_t stream_of(const ReplayRank& rank, const PlayedWork& played);

}  // namespace estimator
