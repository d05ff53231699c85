#include "sim/exec/allocator_follower.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <utility>

namespace sim {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using estimator::MemoryReading;

/// Null until CUDA is initialised.
CUDAAllocator* allocator() {
  CUDAAllocator* const allocator = c10::cuda::CUDACachingAllocator::get();
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

}  // namespace

AllocatorFollower::AllocatorFollower(c10::DeviceIndex device,
                                     std::function<void(const Entry&)> on_change)
    : device_(device), on_change_(std::move(on_change)) {}

bool AllocatorFollower::attach() {
  if (attached_) return true;
  if (allocator() == nullptr) return false;
  attached_ = true;
  allocator()->attachAllocatorTraceTracker([this](const Entry& entry) { changes(entry); });
  return true;
}

MemoryReading AllocatorFollower::current() {
  if (!attached_) return {};
  constexpr auto kAllPools = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = allocator()->getDeviceStats(device_);
  const auto& allocated = stats.allocated_bytes[kAllPools];
  const MemoryReading reading = {.allocated_bytes = allocated.current,
                                 .reserved_bytes = stats.reserved_bytes[kAllPools].current};
  const std::lock_guard lock(mutex_);
  // A block can have come and gone since the last reading, in this order: an allocation tells
  // before it counts, a free after it.
  const int64_t came_bytes = std::max<int64_t>(0, allocated.allocated - last_total_bytes_);
  const int64_t between_bytes = std::max(reading.allocated_bytes, last_bytes_ + came_bytes);
  last_total_bytes_ = allocated.allocated;
  last_bytes_ = reading.allocated_bytes;
  peak_.allocated_bytes = std::max(peak_.allocated_bytes, between_bytes);
  peak_.reserved_bytes = std::max(peak_.reserved_bytes, reading.reserved_bytes);
  return reading;
}

MemoryReading AllocatorFollower::take_peak() {
  current();
  const std::lock_guard lock(mutex_);
  return std::exchange(peak_, {});
}

std::optional<FailedRequest> AllocatorFollower::first_failure() const {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

/// The entry tells what is about to change: the state that is read here is the one before.
void AllocatorFollower::changes(const Entry& entry) {
  on_change_(entry);
  if (entry.device_ != device_) return;
  current();
  if (entry.action_ != Entry::OOM) return;
  const std::lock_guard lock(mutex_);
  if (first_failure_) return;
  first_failure_ = {.requested_bytes = static_cast<int64_t>(entry.size_),
                    .free_bytes = static_cast<int64_t>(entry.addr_)};
}

}  // namespace sim
