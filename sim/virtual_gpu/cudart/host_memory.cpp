#include "sim/virtual_gpu/cudart/host_memory.h"

#include <cstdlib>

namespace virtual_gpu {
namespace {

constexpr size_t kPageBytes = 4096;

}  // namespace

void* HostMemory::allocate(size_t bytes) {
  const size_t whole_bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* address = std::aligned_alloc(kPageBytes, whole_bytes);
  if (address == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  ranges_.emplace(static_cast<char*>(address), Range{bytes, true});
  return address;
}

bool HostMemory::free(void* address) {
  if (!erase(address, true)) return false;
  std::free(address);
  return true;
}

bool HostMemory::register_range(void* address, size_t bytes) {
  std::lock_guard lock(mutex_);
  if (contains_locked(address)) return false;
  ranges_.emplace(static_cast<char*>(address), Range{bytes, false});
  return true;
}

bool HostMemory::unregister_range(void* address) { return erase(address, false); }

bool HostMemory::contains(const void* address) const {
  std::lock_guard lock(mutex_);
  return contains_locked(address);
}

bool HostMemory::contains_locked(const void* address) const {
  const char* byte = static_cast<const char*>(address);
  const auto after = ranges_.upper_bound(byte);
  if (after == ranges_.begin()) return false;
  const auto& [first, range] = *std::prev(after);
  return byte < first + range.bytes;
}

bool HostMemory::erase(void* address, bool is_ours) {
  std::lock_guard lock(mutex_);
  const auto found = ranges_.find(static_cast<char*>(address));
  if (found == ranges_.end() || found->second.is_ours != is_ours) return false;
  ranges_.erase(found);
  return true;
}

}  // namespace virtual_gpu
