// The files that tell of a run's memory, from what a tracker saw.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/fields.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// A line of CSV for each block that was made or freed: seconds since the first, where, and the
/// bytes allocated, reserved and of each category after it. The tracker must have kept history.
std::string timeline_csv(const RunTracker& tracker, const std::vector<std::string>& phases);

/// What torch.cuda.memory._dump_snapshot() writes, for https://pytorch.org/memory_viz and torch's
/// _memory_viz.py: segments and blocks at the end, and all that the allocator did. Stack frames
/// are operators and modules (and C++ functions, where stacks were taken), so that the viewers'
/// flame graphs are by module. `about` stands under the key "onerank". The device must be cuda or
/// virtual, and the tracker must have kept history.
std::string memory_history_pickle(const RunTracker& tracker,
                                  const std::vector<std::string>& phases,
                                  const estimator::Json& about);

}  // namespace sim
