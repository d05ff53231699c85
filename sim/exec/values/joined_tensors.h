// Follows values through operators that put tensors side by side, where only some of them are
// known: SyncBatchNorm sends its count behind means that only kernels know.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <memory>
#include <vector>

#include "sim/exec/program/virtual_gpu_control.h"
#include "sim/exec/values/known_tensors.h"

namespace sim {

/// One call of aten::cat.
class JoinedTensors {
 public:
  /// Null when none of the tensors is known.
  static std::unique_ptr<JoinedTensors> prepare(const at::RecordFunction& function,
                                                const VirtualGpu& gpu);
  /// Makes the known parts of the result known.
  void finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) const;

 private:
  struct Part {
    int64_t start = 0;  ///< in the dimension that is joined
    HostCopy copy;
  };
  int64_t dim_ = 0;
  std::vector<Part> parts_;
};

}  // namespace sim
