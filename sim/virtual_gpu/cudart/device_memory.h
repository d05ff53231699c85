#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace virtual_gpu {

/// The memory of all devices of this process: which addresses are taken and how much of each
/// device's capacity is used. Nothing is stored anywhere. Thread-safe.
///
/// Addresses only grow and lie above every address a host program can have, so that neither a stale
/// pointer nor a host pointer is ever taken for a device pointer.
class DeviceMemory {
 public:
  /// Memory is taken in whole pages of this size, as the driver does.
  static constexpr uint64_t kPageBytes = uint64_t{2} << 20;

  /// Of each device `outside_bytes` are used from the start, by what no allocator makes.
  DeviceMemory(int device_count, uint64_t capacity_bytes, uint64_t outside_bytes = 0);

  /// False, and no change, once anything was allocated.
  bool set_capacity_bytes(uint64_t capacity_bytes);
  uint64_t capacity_bytes() const;
  /// With what is outside.
  uint64_t used_bytes(int device) const;

  /// The address of new memory (a multiple of kPageBytes); none if it does not fit.
  std::optional<uint64_t> allocate(int device, uint64_t bytes);
  /// False if allocate() did not return `address`, or it was freed.
  bool free(uint64_t address);

  /// The device whose memory is at `address`: allocated or mapped. None for any other address.
  std::optional<int> device_at(uint64_t address) const;

  /// A place for a variable of a kernel library; such memory belongs to the context, outside
  /// used_bytes().
  uint64_t place_variable(int device, uint64_t bytes);

  // Virtual memory management: addresses and memory apart. A handle's memory is given back when the
  // handle was released as often as it was created and retained, and nothing maps it any more.

  /// `alignment` is a power of two, or 0 for the page size.
  uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment);
  bool release_addresses(uint64_t address, uint64_t bytes);

  /// A handle for new memory; none if it does not fit. `bytes` is a multiple of kPageBytes.
  std::optional<uint64_t> create(int device, uint64_t bytes);
  bool release(uint64_t handle);
  /// The handle mapped at `address`, with one release() more to come.
  std::optional<uint64_t> retain(uint64_t address);

  /// False if the handle is unknown, or the range is not reserved, or already mapped.
  bool map(uint64_t address, uint64_t bytes, uint64_t handle);
  /// Ends the mappings of a range; false if the range has none, or cuts one.
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
  };
  using Ranges = std::map<uint64_t, Range>;

  // All called with the mutex held.
  uint64_t take_addresses(uint64_t bytes, uint64_t alignment);
  bool take_memory(int device, uint64_t bytes);
  void drop_reference(uint64_t handle);
  Ranges::const_iterator find_range(uint64_t address) const;
  bool is_reserved(uint64_t address, uint64_t bytes) const;

  mutable std::mutex mutex_;
  uint64_t capacity_bytes_;
  std::vector<uint64_t> used_bytes_;  // by device
  bool allocated_once_ = false;
  uint64_t next_address_;
  uint64_t next_handle_ = 1;
  Ranges ranges_;                                    // with memory behind them, by first address
  std::map<uint64_t, uint64_t> reserved_;            // bytes, by first address
  std::unordered_map<uint64_t, Physical> physical_;  // by handle
};

}  // namespace virtual_gpu
