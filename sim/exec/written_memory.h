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

/// Calls visit(offset, bytes) for the runs of bytes that are a tensor's without a gap, counted from
/// its first element. False, and nothing is called, where there are more than `most_runs`.
template <class Visit>
bool for_each_run(const at::Tensor& tensor, int64_t most_runs, const Visit& visit) {
  int64_t outer = tensor.dim();
  int64_t run = 1;  // elements
  for (; outer > 0 && (tensor.size(outer - 1) == 1 || tensor.stride(outer - 1) == run); --outer) {
    run *= tensor.size(outer - 1);
  }
  const int64_t runs = tensor.numel() / run;
  if (runs > most_runs) return false;
  const auto item_bytes = static_cast<int64_t>(tensor.itemsize());
  for (int64_t i = 0; i < runs; ++i) {
    int64_t offset = 0;
    int64_t left = i;
    for (int64_t dim = outer - 1; dim >= 0; --dim) {
      offset += left % tensor.size(dim) * tensor.stride(dim);
      left /= tensor.size(dim);
    }
    visit(offset * item_bytes, static_cast<uint64_t>(run * item_bytes));
  }
  return true;
}

inline constexpr int64_t kMostWrittenRuns = 256;

/// Of these the first argument is left as the host told it, or as its source was; never read.
bool is_copy_or_fill(std::string_view operator_name);

/// What an operator writes, by its schema.
struct OperatorWrites {
  std::vector<size_t> arguments;  ///< that it changes; of most operators none
  std::vector<size_t> results;    ///< that are no arguments
  /// Its own kernels have the last word on what it writes: a histogram fills its result with zeros,
  /// then counts into it. Not so where it is made of other operators, nor where it copies or fills.
  bool computes = false;
  /// It computes, is PyTorch's own and reads nothing back: what it writes in passing, such as
  /// tables for its kernels, is for these alone.
  bool is_closed = false;
};
OperatorWrites writes_of(const at::RecordFunction& function);

/// Calls visit(MemoryRange) for the memory of the tensors on the device that are at `indices` of
/// what an operator takes or gives: without what lies between a tensor's elements, unless its
/// pieces are many.
template <class Visit>
void for_each_memory(c10::ArrayRef<c10::IValue> values,
                     const std::vector<size_t>& indices,
                     const Visit& visit) {
  for (const size_t index : indices) {
    if (index >= values.size()) continue;
    for_each_tensor(values[index], [&](const at::Tensor& tensor) {
      if (!tensor.is_cuda()) return;
      const MemoryRange range = memory_of(tensor);
      if (range.address == nullptr) return;
      const bool is_visited =
          !tensor.is_non_overlapping_and_dense() &&
          for_each_run(tensor, kMostWrittenRuns, [&](int64_t offset, uint64_t bytes) {
            visit(MemoryRange{static_cast<char*>(range.address) + offset, bytes});
          });
      if (!is_visited) visit(range);
    });
  }
}

}  // namespace sim
