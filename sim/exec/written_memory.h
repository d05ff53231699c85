// Which device memory an operator writes: its arguments that its schema says it changes, and what
// it returns anew.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/tracking/tensors_in.h"

namespace sim {

struct MemoryRange {
  void* address;
  uint64_t bytes;
};

/// From a tensor's first to its last element; null for tensors without memory of their own
/// (subclasses, fake tensors).
MemoryRange memory_of(const at::Tensor& tensor);

/// Of these the first argument is left as the host told it, or as its source was; never read.
bool is_copy_or_fill(std::string_view operator_name);

/// What an operator writes, by its schema.
struct OperatorWrites {
  std::vector<size_t> arguments;  ///< that it changes; of most operators none
  std::vector<size_t> results;    ///< that are no arguments
  /// Its own kernels have the last word on what it writes: a histogram fills its result with zeros,
  /// then counts into it. Not so where it is made of other operators, nor where it copies or fills.
  bool computes = false;
  /// It computes, and is PyTorch's own: what it writes in passing, such as tables for its kernels,
  /// is never read back.
  bool is_closed = false;
};
OperatorWrites writes_of(const at::RecordFunction& function);

/// Calls visit(MemoryRange) for the tensors on the device that are at `indices` of what an operator
/// takes or gives.
template <class Visit>
void for_each_memory(c10::ArrayRef<c10::IValue> values,
                     const std::vector<size_t>& indices,
                     const Visit& visit) {
  for (const size_t index : indices) {
    if (index >= values.size()) continue;
    for_each_tensor(values[index], [&](const at::Tensor& tensor) {
      if (!tensor.is_cuda()) return;
      const MemoryRange range = memory_of(tensor);
      if (range.address != nullptr) visit(range);
    });
  }
}

}  // namespace sim
