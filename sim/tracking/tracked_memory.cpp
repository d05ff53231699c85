// What the allocator tells the tracker, and what others tell it of blocks.
#include <optional>

#include "sim/tracking/run_tracker.h"

namespace sim {

using estimator::Direction;

void RunTracker::restart_peak() {
  const std::lock_guard lock(mutex_);
  memory_.restart_peak();
}

void RunTracker::tensor_communicated(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  memory_.saw_communication(tensor);
}

void RunTracker::memory_lasts(const at::Tensor& tensor, const estimator::LastingMemory& memory) {
  const std::lock_guard lock(mutex_);
  memory_.saw_lasting(tensor, memory, modules_.at(memory.owner));
}

void RunTracker::memory_lasts(uint64_t address, const estimator::LastingMemory& memory) {
  const std::lock_guard lock(mutex_);
  memory_.lasts(address, memory, modules_.at(memory.owner));
}

void RunTracker::memory_communicated(uint64_t address) {
  const std::lock_guard lock(mutex_);
  memory_.communicated(address);
}

void RunTracker::memory_gathered(uint64_t address) {
  const std::lock_guard lock(mutex_);
  memory_.gathered(address);
}

void RunTracker::memory_reduced(uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (place_of(this_thread()).direction == Direction::kBackward) memory_.reduced(address);
}

void RunTracker::allocator_event(const AllocatorEvent& event) {
  const std::lock_guard lock(mutex_);
  const bool is_alloc = event.action_ == AllocatorEvent::ALLOC;
  const auto bytes = static_cast<int64_t>(event.size_);
  const auto stream = reinterpret_cast<int64_t>(event.stream_);
  if (is_alloc) memory_.block_requested(event.addr_, bytes, stream);
  if (!options_.keep_history) return;
  const MemoryLog& log = memory_.log();
  history_.steps.push_back(
      {.action = event.action_,
       .address = event.addr_,
       .bytes = bytes,
       .stream = stream,
       .time_us = now_us(),
       .block = is_alloc ? static_cast<int64_t>(log.all().size()) : log.index_of(event.addr_)});
}

void RunTracker::keep_sample(uint64_t address,
                             bool made,
                             const estimator::MemoryReading& after,
                             const Place& place) {
  if (!options_.keep_history) return;
  history_.samples.push_back({.time_us = now_us(),
                              .allocated_bytes = after.allocated_bytes,
                              .reserved_bytes = after.reserved_bytes,
                              .block = memory_.log().index_of(address),
                              .made = made,
                              .phase = phase_,
                              .place = place});
}

std::optional<OutOfMemoryPlace> RunTracker::out_of_memory() const {
  const std::lock_guard lock(mutex_);
  return out_of_memory_;
}

void RunTracker::reportMemoryUsage(void* block,
                                   int64_t change_bytes,
                                   size_t allocated_bytes,
                                   size_t reserved_bytes,
                                   c10::Device device) {
  if (device.type() != options_.device) return;
  const auto address = reinterpret_cast<uint64_t>(block);
  const estimator::MemoryReading after = {.allocated_bytes = static_cast<int64_t>(allocated_bytes),
                                          .reserved_bytes = static_cast<int64_t>(reserved_bytes)};
  if (change_bytes < 0) return block_freed(address, after);
  block_made(address, change_bytes, after, origin_of_block(address));
}

MemoryOrigin RunTracker::origin_of_block(uint64_t address) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  if (!thread.operators.empty()) thread.made_in_operators.push_back(address);
  return {.place = place_of(thread),
          .phase = phase_,
          .op = thread.operators.at_work(),
          .stack = options_.take_stacks ? frames_.capture() : -1};
}

void RunTracker::block_made(uint64_t address,
                            int64_t bytes,
                            const estimator::MemoryReading& after,
                            const MemoryOrigin& origin) {
  const std::lock_guard lock(mutex_);
  memory_.block_made(address, bytes, after.allocated_bytes, origin);
  keep_sample(address, true, after, origin.place);
  if (origin.place.direction == Direction::kForward) forward_made_ = true;
}

void RunTracker::block_freed(uint64_t address, const estimator::MemoryReading& after) {
  const std::lock_guard lock(mutex_);
  if (options_.keep_history) keep_sample(address, false, after, place_of(this_thread()));
  memory_.block_freed(address, after.allocated_bytes);
}

std::optional<MemoryBlock> RunTracker::block_around(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const Allocation* const block = memory_.log().find_around(address);
  if (block == nullptr) return std::nullopt;
  return MemoryBlock{.address = block->address, .bytes = static_cast<uint64_t>(block->bytes)};
}

void RunTracker::reportOutOfMemory(int64_t requested_bytes,
                                   size_t /*allocated_bytes*/,
                                   size_t reserved_bytes,
                                   c10::Device device) {
  if (device.type() != options_.device) return;
  const std::lock_guard lock(mutex_);
  const ThreadPlaces& thread = this_thread();
  out_of_memory_ = {.phase = phase_,
                    .module = place_of(thread).module,
                    .op = thread.operators.at_work(),
                    .requested_bytes = requested_bytes,
                    .reserved_bytes = static_cast<int64_t>(reserved_bytes)};
}

}  // namespace sim
