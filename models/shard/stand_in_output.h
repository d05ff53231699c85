// Where the framework's kernel writes into a tensor made by at::empty and the operator that stands
// for it makes its output itself: PyTorch's deterministic algorithms fill the one, not the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

namespace models {

/// Under deterministic algorithms that fill: makes the outputs that the next operator will make,
/// which fills them, and drops them, so that it gets their memory. Else nothing.
void fill_outputs(std::initializer_list<at::IntArrayRef> shapes, const at::TensorOptions& options);

}  // namespace models
