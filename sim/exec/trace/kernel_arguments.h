// What a kernel moves that no operator of PyTorch launched (Triton's, an extension's): what its
// arguments tell, else the blocks of memory that it was given.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "estimator/profile/trace.h"
#include "sim/tracking/run_tracker.h"
#include "sim/virtual_gpu/control.h"

namespace sim {

/// Not thread-safe, but for kernel_loops().
class KernelArguments {
 public:
  /// `tracker` knows the blocks of memory.
  explicit KernelArguments(const RunTracker& tracker) : tracker_(tracker) {}

  /// A tensor of `bytes` at `address` is a part of its block, for as long as there is that block.
  void tensor_lies(uint64_t address, int64_t bytes);

  /// From now on a kernel with this name reads and writes the first `updated` of `addresses` if it
  /// is given them, and does not do both with the others.
  void kernel_updates(const char* name, std::span<const uint64_t> addresses, int64_t updated);

  /// From now on kernels that this thread launches have loops of these lengths; none: their numbers
  /// are taken for them.
  static void kernel_loops(std::span<const int64_t> lengths);

  /// The work of `event`'s kernel, whose readable name is `name`.
  estimator::TraceWork work_of(const onerank_virtual_gpu_event& event, std::string name) const;

 private:
  /// A parameter or gradient in a flat buffer.
  struct TensorInBlock {
    int64_t bytes = 0;
    MemoryBlock block;
  };
  /// What a kernel was given, by address.
  struct GivenMemory {
    std::map<uint64_t, int64_t> bytes;
    std::map<uint64_t, int64_t> times;  ///< that it is read or written
    int64_t largest = 0;                ///< of `bytes`
  };
  int64_t bytes_at(uint64_t address) const;
  GivenMemory memory_given_to(const onerank_virtual_gpu_event& event,
                              const std::string& name) const;
  static int64_t bytes_moved(const onerank_virtual_gpu_event& event,
                             const GivenMemory& given,
                             const std::vector<int64_t>& sizes);

  const RunTracker& tracker_;
  std::unordered_map<uint64_t, TensorInBlock> tensors_;  // by address
  std::map<std::string, std::set<uint64_t>> updated_;    // addresses, by kernel
};

}  // namespace sim
