// Replays a long step by replaying only a part of it.
//
// Between its warm-up and its end, 1F1B repeats itself with every micro-batch (interleaved 1F1B:
// with every group of micro-batches), once every chunk has begun. (A chunk waits for its parameters
// before its first forward only.) A replay only adds times and takes the latest of several. So if
// over some number of such periods the clocks of all stages, and the arrival times of all inputs
// that are not used yet, have all moved by the same time, they will move by that time over every
// further such number of periods. These periods need not be replayed, and the result is exact
// except for rounding (max-plus algebra: Baccelli et al., Synchronization and Linearity, 1992,
// section 3.7).
#pragma once

#include <array>
#include <optional>

#include "estimator/schedule/schedule_replay.h"

namespace estimator {

/// Gives the same as replay_variants() of the whole schedule. Empty when too few periods repeat to
/// leave any out, or when the stages do not settle soon enough (near ties take long).
std::optional<std::array<ScheduleReplay, kVariants>> replay_folded(const ScheduleShape& shape,
                                                                   const DurationVariants& variants,
                                                                   const ReplayOptions& options);

/// The folded replay if there is one, else the replay of the whole schedule.
std::array<ScheduleReplay, kVariants> replay_shape(const ScheduleShape& shape,
                                                   const DurationVariants& variants,
                                                   const ReplayOptions& options);

}  // namespace estimator
