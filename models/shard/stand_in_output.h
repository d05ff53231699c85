// For deterministic runs. PyTorch's deterministic algorithms fill tensors made by at::empty. Some
// kernels of frameworks write into such a tensor, while the operator that stands for the kernel
// here makes its output itself, which is not filled.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

namespace models {

/// If deterministic algorithms fill new tensors: makes tensors like the outputs of the next
/// operator, which fills them, and frees them, so that the operator gets their memory. Else does
/// nothing.
void fill_outputs(std::initializer_list<at::IntArrayRef> shapes, const at::TensorOptions& options);

}  // namespace models
