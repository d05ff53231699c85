#pragma once

#include <atomic>

#include "sim/virtual_gpu/cudart/timeline.h"

/// An event. The timeline decides when it has happened.
struct CUevent_st {
  bool has_time;
  std::atomic<bool> is_recorded = false;
  std::atomic<uint64_t> record = 0;   // number of the last one; see onerank_virtual_gpu_event
  std::atomic<uint64_t> capture = 0;  // number of the capture that it was recorded in; 0: none
  std::atomic<uint64_t> point = 0;    // number of the point in the capture
  virtual_gpu::Timeline::Clock before = {};  // the work before it; empty: it has happened
};
