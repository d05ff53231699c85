#include "sim/exec/allocator_follower.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <utility>

#include "sim/tracking/allocator_record.h"

namespace sim {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using estimator::AllocatorRecord;
using estimator::MemoryReading;

/// Null until CUDA is initialised.
CUDAAllocator* allocator() {
  CUDAAllocator* const allocator = c10::cuda::CUDACachingAllocator::get();
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

constexpr auto kAllPools = static_cast<size_t>(c10::CachingDeviceAllocator::StatType::AGGREGATE);

c10::CachingDeviceAllocator::DeviceStats stats_of(int device) {
  return allocator()->getDeviceStats(static_cast<c10::DeviceIndex>(device));
}

/// On this thread, one inside the other.
thread_local int running_nodes = 0;

AllocatorRecord larger(const AllocatorRecord& a, const AllocatorRecord& b) {
  return {.requested_peak_bytes = std::max(a.requested_peak_bytes, b.requested_peak_bytes),
          .active_peak_bytes = std::max(a.active_peak_bytes, b.active_peak_bytes),
          .inactive_split_peak_bytes =
              std::max(a.inactive_split_peak_bytes, b.inactive_split_peak_bytes),
          .segments_peak = std::max(a.segments_peak, b.segments_peak),
          .device_allocations = std::max(a.device_allocations, b.device_allocations),
          .retries = std::max(a.retries, b.retries)};
}

}  // namespace

AllocatorFollower::AllocatorFollower(RunTracker& tracker,
                                     std::function<void(const Entry&)> on_change)
    : tracker_(tracker), on_change_(std::move(on_change)) {}

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
  if (device_ == kNoDevice) return {};
  const auto stats = stats_of(device_);
  const auto& allocated = stats.allocated_bytes[kAllPools];
  const MemoryReading reading = {.allocated_bytes = allocated.current,
                                 .reserved_bytes = stats.reserved_bytes[kAllPools].current};
  const std::lock_guard lock(mutex_);
  allocator_ = larger(allocator_, sim::allocator_record(stats));
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

std::vector<estimator::OtherDevice> AllocatorFollower::other_devices() const {
  const std::lock_guard lock(mutex_);
  std::vector<estimator::OtherDevice> devices;
  for (const auto& [device, bytes] : other_reserved_bytes_) devices.push_back({device, bytes});
  return devices;
}

AllocatorRecord AllocatorFollower::allocator_record() const {
  const std::lock_guard lock(mutex_);
  return allocator_;
}

void AllocatorFollower::node_started() { ++running_nodes; }

void AllocatorFollower::node_finished() { --running_nodes; }

std::vector<int64_t> AllocatorFollower::backward_devices() const {
  const std::lock_guard lock(mutex_);
  return {backward_devices_.begin(), backward_devices_.end()};
}

/// The first change of all decides.
bool AllocatorFollower::is_followed(const Entry& entry) {
  int none = kNoDevice;
  device_.compare_exchange_strong(none, entry.device_);
  return entry.device_ == device_;
}

std::optional<FailedRequest> AllocatorFollower::first_failure() const {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

void AllocatorFollower::forget_failure() {
  const std::lock_guard lock(mutex_);
  first_failure_.reset();
}

/// The entry tells what is about to change, but for a free, which has been counted.
void AllocatorFollower::changes(const Entry& entry) {
  // A snapshot changes nothing (torch 2.15's NCCL takes one of every device before the program uses
  // its own), nor do the notes about blocks that torch 2.15 added behind OOM.
  if (entry.action_ == Entry::SNAPSHOT || entry.action_ > Entry::OOM) return;
  on_change_(entry);
  if (entry.action_ == Entry::ALLOC && running_nodes > 0) {
    const std::lock_guard lock(mutex_);
    backward_devices_.insert(entry.device_);
  }
  if (!is_followed(entry)) {
    const int64_t reserved_bytes = stats_of(entry.device_).reserved_bytes[kAllPools].current;
    const std::lock_guard lock(mutex_);
    int64_t& largest_bytes = other_reserved_bytes_[entry.device_];
    largest_bytes = std::max(largest_bytes, reserved_bytes);
    return;
  }
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
                             c10::Device(c10::DeviceType::CUDA, entry.device_));
  ++failures_;
  const std::lock_guard lock(mutex_);
  if (first_failure_) return;
  first_failure_ = {.requested_bytes = requested_bytes,
                    .free_bytes = static_cast<int64_t>(entry.addr_),
                    .place = *tracker_.out_of_memory()};
}

}  // namespace sim
