#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace virtual_gpu {

/// Page-locked host memory: real memory of the process, known to the device. It takes none of the
/// machine's until it is written, however large it is. Thread-safe.
class HostMemory {
 public:
  /// Null if the host has no more.
  void* allocate(size_t bytes);
  /// False if allocate() did not return `address`, or it was freed.
  bool free(void* address);

  /// Makes the caller's own memory known; false if its first byte already is.
  bool register_range(void* address, size_t bytes);
  /// False if register_range() was not called with `address`.
  bool unregister_range(void* address);

  /// True inside memory that was allocated or registered here.
  bool contains(const void* address) const;

 private:
  struct Range {
    size_t bytes;
    bool is_ours;
  };

  bool contains_locked(const void* address) const;
  /// How many bytes the range had; 0 where there is none.
  size_t erase(void* address, bool is_ours);

  mutable std::mutex mutex_;
  std::map<const char*, Range> ranges_;
};

}  // namespace virtual_gpu
