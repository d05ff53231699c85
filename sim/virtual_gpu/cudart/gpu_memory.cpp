#include "sim/virtual_gpu/cudart/gpu_memory.h"

#include <algorithm>

namespace virtual_gpu {
namespace {

constexpr uint64_t kFirstAddress = uint64_t{1} << 48;  // host addresses have 47 bits
constexpr uint64_t kAddressesOfDevice = uint64_t{1} << 45;

uint64_t round_up(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

DeviceMemory::DeviceMemory(int device_count, uint64_t capacity_bytes, uint64_t outside_bytes)
    : capacity_bytes_(capacity_bytes),
      used_bytes_(device_count, outside_bytes),
      most_used_bytes_(used_bytes_),
      next_address_(kFirstAddress + device_count * kAddressesOfDevice) {
  for (int device = 0; device < device_count; ++device) {
    spans_.emplace_back(kFirstAddress + (device + 1) * kAddressesOfDevice);
  }
}

bool DeviceMemory::set_capacity_bytes(uint64_t capacity_bytes) {
  std::lock_guard lock(mutex_);
  if (allocated_once_) return false;
  capacity_bytes_ = capacity_bytes;
  return true;
}

uint64_t DeviceMemory::capacity_bytes() const {
  std::lock_guard lock(mutex_);
  return capacity_bytes_;
}

uint64_t DeviceMemory::used_bytes(int device) const {
  std::lock_guard lock(mutex_);
  return used_bytes_[device];
}

uint64_t DeviceMemory::most_used_bytes(int device) const {
  std::lock_guard lock(mutex_);
  return most_used_bytes_[device];
}

std::optional<uint64_t> DeviceMemory::allocate(int device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!take_memory(device, bytes)) return std::nullopt;
  const uint64_t whole_bytes = round_up(bytes, kPageBytes);
  const uint64_t address = spans_[device].take(whole_bytes);
  ranges_.emplace(address, Range{whole_bytes, device, Kind::kAllocation, 0});
  return address;
}

bool DeviceMemory::free(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second.kind != Kind::kAllocation) return false;
  used_bytes_[found->second.device] -= found->second.bytes;
  ranges_.erase(found);
  return true;
}

std::optional<int> DeviceMemory::device_at(uint64_t address) const {
  if (address < kFirstAddress) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = find_range(address);
  if (found == ranges_.end()) return std::nullopt;
  return found->second.device;
}

uint64_t DeviceMemory::place_variable(int device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t address = take_addresses(bytes, kPageBytes);
  ranges_.emplace(address, Range{bytes, device, Kind::kVariable, 0});
  return address;
}

uint64_t DeviceMemory::reserve_addresses(uint64_t bytes, uint64_t alignment) {
  std::lock_guard lock(mutex_);
  const uint64_t address = take_addresses(bytes, std::max(alignment, kPageBytes));
  reserved_.emplace(address, bytes);
  return address;
}

bool DeviceMemory::release_addresses(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second != bytes) return false;
  reserved_.erase(found);
  return true;
}

std::optional<uint64_t> DeviceMemory::create(int device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!take_memory(device, bytes)) return std::nullopt;
  return add_physical({.bytes = bytes, .device = device, .references = 1});
}

std::optional<SharedMemory> DeviceMemory::shared(uint64_t handle) const {
  std::lock_guard lock(mutex_);
  const auto memory = physical_.find(handle);
  if (memory == physical_.end()) return std::nullopt;
  return SharedMemory{.is_multicast = memory->second.is_multicast, .bytes = memory->second.bytes};
}

uint64_t DeviceMemory::adopt(int device, const SharedMemory& memory) {
  std::lock_guard lock(mutex_);
  adopted_once_ = true;
  return add_physical({.bytes = memory.bytes,
                       .device = device,
                       .references = 1,
                       .is_adopted = true,
                       .is_multicast = memory.is_multicast});
}

bool DeviceMemory::is_adopted(uint64_t address) const {
  if (!adopted_once_) return false;
  std::lock_guard lock(mutex_);
  const auto range = find_range(address);
  return range != ranges_.end() && range->second.kind == Kind::kMapping &&
         physical_.at(range->second.handle).is_adopted;
}

bool DeviceMemory::release(uint64_t handle) {
  std::lock_guard lock(mutex_);
  if (!physical_.contains(handle)) return false;
  drop_reference(handle);
  return true;
}

std::optional<uint64_t> DeviceMemory::retain(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto found = find_range(address);
  if (found == ranges_.end() || found->second.kind != Kind::kMapping) return std::nullopt;
  ++physical_.at(found->second.handle).references;
  return found->second.handle;
}

bool DeviceMemory::map(uint64_t address, uint64_t bytes, uint64_t handle) {
  std::lock_guard lock(mutex_);
  const auto memory = physical_.find(handle);
  if (memory == physical_.end() || !is_reserved(address, bytes)) return false;
  const bool overlaps_next = ranges_.lower_bound(address) != ranges_.lower_bound(address + bytes);
  if (overlaps_next || find_range(address) != ranges_.end()) return false;
  ++memory->second.references;
  ranges_.emplace(address, Range{bytes, memory->second.device, Kind::kMapping, handle});
  return true;
}

bool DeviceMemory::unmap(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto first = ranges_.lower_bound(address);
  const auto last = ranges_.lower_bound(address + bytes);
  const bool cuts_first = first == last || first->first != address;
  if (cuts_first) return false;
  const auto& [last_address, last_range] = *std::prev(last);
  if (last_address + last_range.bytes > address + bytes) return false;
  for (auto range = first; range != last; ++range) {
    if (range->second.kind != Kind::kMapping) return false;
  }
  for (auto range = first; range != last; ++range) drop_reference(range->second.handle);
  ranges_.erase(first, last);
  return true;
}

uint64_t DeviceMemory::take_addresses(uint64_t bytes, uint64_t alignment) {
  const uint64_t address = round_up(next_address_, alignment);
  next_address_ = address + bytes;
  return address;
}

bool DeviceMemory::take_memory(int device, uint64_t bytes) {
  const uint64_t free_bytes = capacity_bytes_ - used_bytes_[device];
  if (bytes > free_bytes || round_up(bytes, kPageBytes) > free_bytes) return false;
  used_bytes_[device] += round_up(bytes, kPageBytes);
  most_used_bytes_[device] = std::max(most_used_bytes_[device], used_bytes_[device]);
  allocated_once_ = true;
  return true;
}

uint64_t DeviceMemory::add_physical(const Physical& memory) {
  physical_.emplace(next_handle_, memory);
  return next_handle_++;
}

void DeviceMemory::drop_reference(uint64_t handle) {
  const auto memory = physical_.find(handle);
  if (--memory->second.references > 0) return;
  if (!memory->second.is_adopted) used_bytes_[memory->second.device] -= memory->second.bytes;
  physical_.erase(memory);
}

DeviceMemory::Ranges::const_iterator DeviceMemory::find_range(uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  const auto range = std::prev(after);
  return address < range->first + range->second.bytes ? range : ranges_.end();
}

bool DeviceMemory::is_reserved(uint64_t address, uint64_t bytes) const {
  const auto after = reserved_.upper_bound(address);
  if (after == reserved_.begin()) return false;
  const auto& [first, length] = *std::prev(after);
  return address + bytes <= first + length;
}

}  // namespace virtual_gpu
