#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "sim/virtual_gpu/cudart/cubin.h"
#include "sim/virtual_gpu/cudart/fat_binary.h"

namespace virtual_gpu {

struct Kernel {
  const char* name = "?";           // mangled; belongs to the library that registered the kernel
  const FatBinary* code = nullptr;  // null if it is not known: found at run time in a module
  KernelCode found;                 // of code found at run time
  std::atomic<uint64_t> launches = 0;
};

/// The kernels of the process and their launches, counted. Thread-safe; a launch costs an
/// uncontended lock and a lookup, some tens of nanoseconds against the microseconds of its
/// operator.
class KernelTable {
 public:
  /// `function` is what launches pass. `name` and `code` must live as long as the table.
  void add(const void* function, const char* name, const FatBinary* code, KernelCode found = {});

  /// The kernel of a launch; one that was never added has no name.
  Kernel& find(const void* function);
  void count_launch(Kernel& kernel);

  /// One at a time, for the rest of the process; see onerank_virtual_gpu_set_launch_sink().
  using LaunchSink = std::function<void(const uint64_t* addresses, int64_t count)>;
  void set_launch_sink(LaunchSink sink);
  /// Null until there is one.
  const LaunchSink* launch_sink() const { return launch_sink_; }

  uint64_t launches() const { return launches_; }
  /// Calls `visit` for every kernel that was launched.
  void visit(const std::function<void(const Kernel&)>& visit) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Kernel> kernels_;  // its elements never move
  std::atomic<uint64_t> launches_ = 0;
  std::atomic<const LaunchSink*> launch_sink_ = nullptr;
};

}  // namespace virtual_gpu
