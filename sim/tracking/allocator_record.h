// The statistics of PyTorch's caching allocator, in the form of a profile.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// The peaks are those since the allocator's peaks were last reset.
inline estimator::AllocatorRecord allocator_record(
    const c10::CachingDeviceAllocator::DeviceStats& stats) {
  constexpr auto kAllPools = static_cast<size_t>(c10::CachingDeviceAllocator::StatType::AGGREGATE);
  return {.requested_peak_bytes = stats.requested_bytes[kAllPools].peak,
          .active_peak_bytes = stats.active_bytes[kAllPools].peak,
          .inactive_split_peak_bytes = stats.inactive_split_bytes[kAllPools].peak,
          .segments_peak = stats.segment[kAllPools].peak,
          .device_allocations = stats.num_device_alloc,
          .retries = stats.num_alloc_retries};
}

}  // namespace sim
