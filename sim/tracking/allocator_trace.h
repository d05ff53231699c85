// The events of PyTorch's CUDA caching allocator, which say more than the statistics of all
// devices.
#pragma once

#include <torch/version.h>

#include <vector>

#include "estimator/base/json_value.h"
// torch 2.11 has moved what is not CUDA's own.
#if TORCH_VERSION_MINOR < 11
#include <c10/cuda/CUDACachingAllocator.h>
namespace sim {
namespace caching_allocator = c10::cuda::CUDACachingAllocator;
}
#else
#include <c10/core/CachingDeviceAllocator.h>
namespace sim {
namespace caching_allocator = c10::CachingDeviceAllocator;
}
#endif

namespace sim {

using AllocatorEvent = caching_allocator::TraceEntry;
using AllocatorSink = caching_allocator::AllocatorTraceTracker;

/// From now on, until the process ends, `sink` is called for every event of the CUDA allocator, in
/// the thread that caused it and under the allocator's lock. CUDA must have been initialised.
/// Throws std::logic_error in a build for a torch without CUDA, which has no such allocator.
void trace_allocator(AllocatorSink sink);

/// The segments that the allocator holds now, and its settings, under the keys of PyTorch's
/// snapshots.
struct AllocatorState {
  std::vector<caching_allocator::SegmentInfo> segments;
  estimator::JsonValue settings;
};
AllocatorState allocator_state();

}  // namespace sim
