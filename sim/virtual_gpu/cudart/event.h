#pragma once

#include <atomic>

#include "sim/virtual_gpu/cudart/timeline.h"

/// An event: when it happens is the timeline's business.
struct CUevent_st {
  bool has_time;
  std::atomic<bool> is_recorded = false;
  virtual_gpu::Timeline::Clock before = {};  // what comes before it; empty: it has happened
};
