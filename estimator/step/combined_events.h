// The events of a forward and a backward that run together, piece by piece.
#pragma once

#include <cstdint>
#include <set>

#include "estimator/profile/step_order.h"
#include "estimator/schedule/pipeline_schedule.h"
#include "estimator/step/lap_trace.h"

namespace estimator {

/// The pairs that the stage runs together.
std::set<ChunkPair> pairs_of(const ScheduleShape& shape, int64_t stage);

/// Events of one chunk's forward and of one chunk's backward, in the order of their pieces
/// (schedule/piece_order.h): that in which the rank's host would ask for them.
LapEvents combined_events(const OrderEvents& events,
                          const LapEvents& forward,
                          const LapEvents& backward,
                          bool attention_released_early);

}  // namespace estimator
