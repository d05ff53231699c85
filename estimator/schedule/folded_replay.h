// A long step by the replay of a shorter one.
//
// Between its warm-up and its end, 1F1B repeats itself with every micro-batch (interleaved: with
// every group of them), once every chunk has begun: before its first forward a chunk waits for its
// parameters, and never again. A replay only adds times and takes the latest of them. So once all
// clocks, and all inputs that wait to be used, have moved by one and the same time over some such
// periods, they move by it over every further such number of periods, and those can be left out:
// exactly, but for rounding (max-plus algebra: Baccelli et al., Synchronization and Linearity,
// 1992, section 3.7).
#pragma once

#include <array>
#include <optional>

#include "estimator/schedule/schedule_replay.h"

namespace estimator {

/// As replay_variants() of the whole schedule. Empty where nothing repeats for long enough to be
/// left out, or the stages have not settled soon enough (near ties take long).
std::optional<std::array<ScheduleReplay, kVariants>> replay_folded(const ScheduleShape& shape,
                                                                   const DurationVariants& variants,
                                                                   bool overlap_sends);

/// Folded where that works, else whole.
std::array<ScheduleReplay, kVariants> replay_shape(const ScheduleShape& shape,
                                                   const DurationVariants& variants,
                                                   bool overlap_sends);

}  // namespace estimator
