#include "sim/virtual_gpu/cudart/pinned_memory.h"

#include <sys/mman.h>

namespace virtual_gpu {

void* HostMemory::allocate(size_t bytes) {
  void* address = mmap(
      nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  std::lock_guard lock(mutex_);
  ranges_.emplace(static_cast<char*>(address), Range{bytes, true});
  return address;
}

bool HostMemory::free(void* address) {
  const size_t bytes = erase(address, true);
  return bytes > 0 && munmap(address, bytes) == 0;
}

bool HostMemory::register_range(void* address, size_t bytes) {
  std::lock_guard lock(mutex_);
  if (contains_locked(address)) return false;
  ranges_.emplace(static_cast<char*>(address), Range{bytes, false});
  return true;
}

bool HostMemory::unregister_range(void* address) { return erase(address, false) > 0; }

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

size_t HostMemory::erase(void* address, bool is_ours) {
  std::lock_guard lock(mutex_);
  const auto found = ranges_.find(static_cast<char*>(address));
  if (found == ranges_.end() || found->second.is_ours != is_ours) return 0;
  const size_t bytes = found->second.bytes;
  ranges_.erase(found);
  return bytes;
}

}  // namespace virtual_gpu
