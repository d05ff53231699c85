#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/virtual_gpu/cudart/address_spans.h"
#include "sim/virtual_gpu/cudart/shared_descriptor.h"

namespace virtual_gpu {

/// The memory of all devices of this process: which addresses are in use, and how much of each
/// device's capacity. No contents are stored. Thread-safe.
///
/// No address is given out twice, and all lie above those that a host program can have. So neither
/// a stale pointer nor a host pointer is ever taken for a device pointer.
class DeviceMemory {
 public:
  /// Memory is allocated in whole pages of this size, as in NVIDIA's driver.
  static constexpr uint64_t kPageBytes = uint64_t{2} << 20;

  /// `outside_bytes` of each device are in use from the start, by memory that no allocator makes.
  DeviceMemory(int device_count, uint64_t capacity_bytes, uint64_t outside_bytes = 0);

  /// Returns false and changes nothing if anything was allocated before.
  bool set_capacity_bytes(uint64_t capacity_bytes);
  uint64_t capacity_bytes() const;
  /// Bytes in use, including the outside bytes.
  uint64_t used_bytes(int device) const;
  /// The largest that used_bytes() ever was.
  uint64_t most_used_bytes(int device) const;

  /// The address of new memory (a multiple of kPageBytes); empty if the memory does not fit.
  std::optional<uint64_t> allocate(int device, uint64_t bytes);
  /// Returns false if allocate() did not return `address`, or if it was freed already.
  bool free(uint64_t address);

  /// The device whose allocated or mapped memory is at `address`; empty for any other address.
  std::optional<int> device_at(uint64_t address) const;

  /// The address of new memory for a variable of a kernel library. Such memory belongs to the
  /// context and does not count in used_bytes().
  uint64_t place_variable(int device, uint64_t bytes);

  // Virtual memory management, in which addresses and memory are separate. The memory of a handle
  // is freed when the handle was released as often as it was created and retained, and nothing maps
  // it.

  /// `alignment` is a power of two, or 0 for the page size.
  uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment);
  bool release_addresses(uint64_t address, uint64_t bytes);

  /// A handle for new memory; empty if it does not fit. `bytes` must be a multiple of kPageBytes.
  std::optional<uint64_t> create(int device, uint64_t bytes);
  bool release(uint64_t handle);
  /// The handle that is mapped at `address`. It then needs one more release().
  std::optional<uint64_t> retain(uint64_t address);

  /// What another process imports of this memory; empty if the handle is unknown.
  std::optional<SharedMemory> shared(uint64_t handle) const;
  /// A handle for memory of other processes' devices, which `device` can map. It takes nothing of
  /// its capacity.
  uint64_t adopt(int device, const SharedMemory& memory);
  /// Whether memory of other processes' devices is mapped at `address`.
  bool is_adopted(uint64_t address) const;

  /// Returns false if the handle is unknown, or if the range is not reserved or is already mapped.
  bool map(uint64_t address, uint64_t bytes, uint64_t handle);
  /// Ends the mappings in a range. Returns false if there are none, or if the range cuts one.
  bool unmap(uint64_t address, uint64_t bytes);

 private:
  enum class Kind { kAllocation, kVariable, kMapping };
  struct Range {
    uint64_t bytes;
    int device;
    Kind kind;
    uint64_t handle;  // of a mapping
  };
  struct Physical {
    uint64_t bytes;
    int device;
    int references;  // of its owners and its mappings
    bool is_adopted = false;
    bool is_multicast = false;
  };
  using Ranges = std::map<uint64_t, Range>;

  // These are called with the mutex held.
  uint64_t take_addresses(uint64_t bytes, uint64_t alignment);
  bool take_memory(int device, uint64_t bytes);
  uint64_t add_physical(const Physical& memory);
  void drop_reference(uint64_t handle);
  Ranges::const_iterator find_range(uint64_t address) const;
  bool is_reserved(uint64_t address, uint64_t bytes) const;

  mutable std::mutex mutex_;
  uint64_t capacity_bytes_;
  std::vector<uint64_t> used_bytes_;  // by device
  std::vector<uint64_t> most_used_bytes_;
  bool allocated_once_ = false;
  std::atomic<bool> adopted_once_ = false;  // most programs need not look
  std::vector<AddressSpans> spans_;         // of allocations, by device
  uint64_t next_address_;                   // of all else: it grows
  uint64_t next_handle_ = 1;
  Ranges ranges_;                                    // ranges with memory, by first address
  std::map<uint64_t, uint64_t> reserved_;            // bytes, by first address
  std::unordered_map<uint64_t, Physical> physical_;  // by handle
};

}  // namespace virtual_gpu
