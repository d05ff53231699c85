#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/native_dropout.h>

#include <memory>

#include "models/shard/framework_buffers.h"

namespace models {

/// Dropout, which keeps a mask of one byte for each element. With probability 0 it does and keeps
/// nothing.
inline at::Tensor dropout(const at::Tensor& input, double probability) {
  if (probability == 0) return input;
  return std::get<0>(at::native_dropout(input, probability, /*train=*/true));
}

struct BiasDropoutAdd {
  double probability = 0;
  /// It is one kernel, as in Megatron-LM (bias_dropout_add_fused_train in
  /// megatron/core/fusions/fused_bias_dropout.py).
  bool fused = false;
  /// Inductor compiles this kernel: rows of the mask that are longer than 1,024 bytes are padded to
  /// a multiple of 128 bytes (padding_stride_threshold and padding_alignment_bytes in
  /// torch/_inductor/config.py, Layout._pad_strides in ir.py of 2.11).
  bool compiled = false;
  /// If the device computes nothing, the compiled one allocates what Inductor's kernels do: only
  /// their results. PyTorch's sum for the gradient of the bias would take a buffer besides.
  bool computes = true;
  std::shared_ptr<FrameworkBuffers> buffers;  ///< in which the compiled one is tuned
};

/// residual + dropout(output + bias); a bias or a residual that is undefined is not added. The
/// compiled kernel needs a residual.
at::Tensor bias_dropout_add(const at::Tensor& output,
                            const at::Tensor& bias,
                            const at::Tensor& residual,
                            const BiasDropoutAdd& call);

}  // namespace models
