// Follows random integers that a program draws on the device (torch.randint): what PyTorch's kernel
// for them makes depends on the seed and on how many numbers were drawn before, which its generator
// keeps on the host.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "sim/exec/program/virtual_gpu_control.h"

namespace sim {

bool draws_integers(std::string_view operator_name);

/// One call of aten::random_ with bounds.
class DrawnIntegers {
 public:
  /// Null for a result that is large or not contiguous, for numbers of 2^28 and more, for which
  /// PyTorch's releases have different kernels, and while a graph is captured. Must be called
  /// before the operator draws.
  static std::unique_ptr<DrawnIntegers> prepare(const at::RecordFunction& function,
                                                const VirtualGpu& gpu);
  /// Makes the numbers known, as those that a kernel computed.
  void finish(const VirtualGpu& gpu) const;

 private:
  at::Tensor result_;
  int64_t first_ = 0;
  int64_t range_ = 0;
  uint64_t seed_ = 0;
  uint64_t drawn_before_ = 0;
};

}  // namespace sim
