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
                                     RunTracker& tracker,
                                     std::function<void(const Entry&)> on_change)
    : device_(device), tracker_(tracker), on_change_(std::move(on_change)) {}

bool AllocatorFollower::attach() {
  if (attached_) return true;
  if (allocator() == nullptr) return false;
  attached_ = true;
  allocator()->attachAllocatorTraceTracker([this](const Entry& entry) { changes(entry); });
  return true;
}

void AllocatorFollower::settle() {
  if (has_new_block_) current();
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
  if (new_block_ && came_bytes > 0) {
    const NewBlock block = *std::exchange(new_block_, std::nullopt);
    has_new_block_ = false;
    tracker_.block_made(
        block.address, came_bytes, {between_bytes, reading.reserved_bytes}, block.origin);
  }
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

/// The entry tells what is about to change, but for a free, which has been counted.
void AllocatorFollower::changes(const Entry& entry) {
  on_change_(entry);
  if (entry.device_ != device_) return;
  // Its request has told of it.
  if (entry.action_ == Entry::FREE_COMPLETED) return tracker_.allocator_event(entry);
  const MemoryReading now = current();
  tracker_.allocator_event(entry);
  if (entry.action_ == Entry::ALLOC) {
    const std::lock_guard lock(mutex_);
    new_block_ = {.address = entry.addr_, .origin = tracker_.origin_of_block(entry.addr_)};
    has_new_block_ = true;
  } else if (entry.action_ == Entry::FREE_REQUESTED) {
    tracker_.block_freed(entry.addr_, now);
  } else if (entry.action_ == Entry::OOM) {
    failed(entry, now);
  }
}

void AllocatorFollower::failed(const Entry& entry, const MemoryReading& now) {
  const auto requested_bytes = static_cast<int64_t>(entry.size_);
  tracker_.reportOutOfMemory(requested_bytes,
                             static_cast<size_t>(now.allocated_bytes),
                             static_cast<size_t>(now.reserved_bytes),
                             c10::Device(c10::DeviceType::CUDA, device_));
  const std::lock_guard lock(mutex_);
  if (first_failure_) return;
  first_failure_ = {.requested_bytes = requested_bytes,
                    .free_bytes = static_cast<int64_t>(entry.addr_)};
}

}  // namespace sim
