// The file descriptors by which processes share memory of the virtual GPU.
#pragma once

#include <cstdint>
#include <optional>

namespace virtual_gpu {

/// Memory that another process exported.
struct SharedMemory {
  /// Of all members of a group at once: what is written there is written to each of them.
  bool is_multicast = false;
  uint64_t bytes = 0;  ///< 0: not known
  bool operator==(const SharedMemory&) const = default;
};

/// A new file descriptor, which the caller closes. Its file says what the memory is; no memory is
/// behind it. -1 if the system gives none.
int make_descriptor(const SharedMemory& memory);

/// What make_descriptor() wrote, in this process or in another one; empty for any other file. The
/// descriptor stays open.
std::optional<SharedMemory> read_descriptor(int descriptor);

}  // namespace virtual_gpu
