// Which device memory an operator writes: its arguments that its schema says it changes, and what
// it returns anew.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <string_view>
#include <vector>

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

/// Whether the operator's own kernels have the last word on what it writes: a histogram fills its
/// result with zeros, then counts into it. Not so where it is made of other operators, nor where it
/// copies or fills.
bool computes(const at::RecordFunction& function);

/// Arguments that are changed; of most operators none. To be called when the operator starts, while
/// its inputs are there.
std::vector<MemoryRange> memory_written_by(const at::RecordFunction& function);

/// Results of an operator that computes, where they are not its arguments. To be called when it
/// has finished.
std::vector<MemoryRange> memory_computed_by(const at::RecordFunction& function);

}  // namespace sim
