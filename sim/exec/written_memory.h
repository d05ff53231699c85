// Which device memory an operator writes: its arguments that its schema says it changes. (What it
// returns anew lies in memory that was just allocated.)
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <vector>

namespace sim {

struct MemoryRange {
  void* address;
  uint64_t bytes;
};

/// From a tensor's first to its last element; null for tensors without memory of their own
/// (subclasses, fake tensors).
MemoryRange memory_of(const at::Tensor& tensor);

/// Empty for most operators. To be called when the operator starts, while its inputs are there.
std::vector<MemoryRange> memory_written_by(const at::RecordFunction& function);

}  // namespace sim
