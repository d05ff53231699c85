// What happened to the device's memory, step by step. It is kept only if a file needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/tracking/allocator_trace.h"
#include "sim/tracking/thread_places.h"

namespace sim {

inline constexpr int64_t kNoBlock = -1;

/// A step of the caching allocator. `block` is an index in MemoryLog::all().
struct AllocatorStep {
  AllocatorEvent::Action action = AllocatorEvent::ALLOC;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t stream = 0;
  int64_t time_us = 0;  ///< since 1970
  int64_t block = kNoBlock;
};

/// The state after a block was made or freed.
struct MemorySample {
  int64_t time_us = 0;
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t block = kNoBlock;  ///< kNoBlock: made before the log began
  bool made = false;
  int32_t phase = -1;
  Place place;  ///< where it was made or freed
};

struct PhaseTimes {
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

struct MemoryHistory {
  std::vector<AllocatorStep> steps;  ///< empty on the CPU
  std::vector<MemorySample> samples;
  std::vector<PhaseTimes> phases;  ///< by number
};

/// Microseconds since 1970.
int64_t now_us();

}  // namespace sim
