// The device memory that an operator writes: the arguments that it changes by its schema, and the
// results that it makes.
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

/// The memory from a tensor's first to its last element. The address is null for tensors without
/// memory of their own (subclasses, fake tensors).
MemoryRange memory_of(const at::Tensor& tensor);

/// Calls visit(offset, bytes) for each run of a tensor's bytes without a gap; offsets count from
/// its first element. If there are more than `most_runs` runs, calls nothing and returns false.
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

/// Whether the operator copies or fills. Such an operator never reads its first argument;
/// afterwards this holds what the host gave, or what the source held.
bool is_copy_or_fill(std::string_view operator_name);

/// What an operator writes, by its schema.
struct OperatorWrites {
  std::vector<size_t> arguments;  ///< indices of arguments that it changes; mostly none
  std::vector<size_t> results;    ///< indices of results that are no arguments
  /// Its own kernels decide what it finally writes: a histogram, for example, fills its result with
  /// zeros and then counts into it. False if it is composed of other operators, or copies or fills.
  bool computes = false;
  /// It computes, is PyTorch's own, and reads nothing back. Unless Python carries it out, other
  /// things that it writes, such as tables for its kernels, are used by these kernels only.
  bool is_closed = false;
};
OperatorWrites writes_of(const at::RecordFunction& function);

/// Calls visit(MemoryRange) for the memory of those device tensors that are at `indices` of an
/// operator's inputs or outputs. Gaps between a tensor's elements are left out, unless it has too
/// many pieces.
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
