#pragma once

#include <atomic>

#include "sim/virtual_gpu/cudart/timeline.h"

/// An event. The timeline decides when it has happened.
struct CUevent_st {
  bool has_time;
  std::atomic<bool> is_recorded = false;
  virtual_gpu::Timeline::Clock before = {};  // the work before it; empty: it has happened
};
