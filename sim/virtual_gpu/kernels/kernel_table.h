#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "sim/virtual_gpu/kernels/cubin.h"
#include "sim/virtual_gpu/kernels/fat_binary.h"

namespace virtual_gpu {

struct Kernel {
  const char* name = "?";           // mangled; belongs to the library that registered the kernel
  const FatBinary* code = nullptr;  // null if not known, as for code loaded at run time
  KernelCode found;                 // what code loaded at run time says
  std::atomic<uint64_t> launches = 0;
};

/// The kernels of the process, with the number of their launches. Thread-safe. A launch costs an
/// uncontended lock and a lookup: some tens of nanoseconds, while its operator takes microseconds.
class KernelTable {
 public:
  /// `function` is the pointer that launches pass. `name` and `code` must live as long as the
  /// table.
  void add(const void* function, const char* name, const FatBinary* code, KernelCode found = {});

  /// The kernel of a launch. A kernel that was never added has no name.
  Kernel& find(const void* function);
  void count_launch(Kernel& kernel);

  uint64_t launches() const { return launches_; }
  /// Calls `visit` for every kernel that was launched.
  void visit(const std::function<void(const Kernel&)>& visit) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Kernel> kernels_;  // its elements never move
  std::atomic<uint64_t> launches_ = 0;
};

}  // namespace virtual_gpu
