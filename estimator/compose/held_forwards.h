// What the forwards of a stage with several model chunks hold, step by step of its schedule.
//
// While one group of micro-batches goes through the chunks, the chunks at the front of the model
// have more forwards in flight than their share, and those at its end have none. A chunk that has
// none may still hold tensors: see models/pipeline/schedule_variables.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

/// Bytes that chunks hold.
struct HeldBytes {
  std::vector<double> of_forward;  ///< of each chunk, for each forward in flight
  /// Of each chunk whose last forward has had its backward, until it begins another one.
  std::vector<double> of_ended;
  double of_pair = 0;  ///< of a forward, until the end of the backward that is paired with it
};

/// The most bytes that are held as a backward begins, among the first `micro_batches` of the step
/// (micro_batches_to_execute()); of `of_chunk` alone, if it is given.
double most_held_bytes(const ScheduleShape& shape,
                       int64_t stage,
                       int64_t micro_batches,
                       const HeldBytes& bytes,
                       std::optional<int64_t> of_chunk = std::nullopt);

}  // namespace estimator
