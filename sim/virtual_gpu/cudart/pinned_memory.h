#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace virtual_gpu {

/// Page-locked host memory: real memory of the process that the device knows. However large it is,
/// it takes no physical memory until it is written. Thread-safe.
class HostMemory {
 public:
  /// Null if the host has no memory left.
  void* allocate(size_t bytes);
  /// Returns false if allocate() did not return `address`, or if it was freed already.
  bool free(void* address);

  /// Registers memory of the caller. Returns false if its first byte is already registered.
  bool register_range(void* address, size_t bytes);
  /// Returns false if register_range() was not called with `address`.
  bool unregister_range(void* address);

  /// Whether `address` is in memory that was allocated or registered here.
  bool contains(const void* address) const;

 private:
  struct Range {
    size_t bytes;
    bool is_ours;
  };

  bool contains_locked(const void* address) const;
  /// Removes the range and returns its size in bytes; 0 if there is none.
  size_t erase(void* address, bool is_ours);

  mutable std::mutex mutex_;
  std::map<const char*, Range> ranges_;
};

}  // namespace virtual_gpu
