// The events of PyTorch's CUDA caching allocator, which say more than the statistics of all
// devices.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

#include "estimator/base/fields.h"

namespace sim {

using AllocatorEvent = c10::CachingDeviceAllocator::TraceEntry;
using AllocatorSink = c10::CachingDeviceAllocator::AllocatorTraceTracker;

/// From now on, until the process ends, `sink` is called for every event of the CUDA allocator, in
/// the thread that caused it and under the allocator's lock. CUDA must have been initialised.
/// Throws std::logic_error in a build for a torch without CUDA, which has no such allocator.
void trace_allocator(AllocatorSink sink);

/// The segments that the allocator holds now, and its settings, under the keys of PyTorch's
/// snapshots.
struct AllocatorState {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
  estimator::Json settings;
};
AllocatorState allocator_state();

}  // namespace sim
