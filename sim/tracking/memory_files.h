// Makes the files about a run's memory from what a tracker saw.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/json.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// CSV with one line for each block that was made or freed: the seconds since the first one, the
/// place, and the allocated bytes, reserved bytes and bytes of each category after it. The tracker
/// must have kept history.
std::string timeline_csv(const TrackedRun& tracker, const std::vector<std::string>& phases);

/// What torch.cuda.memory._dump_snapshot() writes, for https://pytorch.org/memory_viz and torch's
/// _memory_viz.py: segments and blocks at the end, and all events of the allocator. Stack frames
/// are operators and modules (and C++ functions, if stacks were taken), so that the viewers show
/// flame graphs by module. `about` is written under the key "onerank". The device must be cuda or
/// virtual, and the tracker must have kept history.
std::string memory_history_pickle(const TrackedRun& tracker,
                                  const std::vector<std::string>& phases,
                                  const estimator::Json& about);

}  // namespace sim
