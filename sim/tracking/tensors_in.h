// Finds the tensors in the inputs or outputs of an operator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

namespace sim {

/// Whether a tensor stands for one whose sizes torch.compile does not know yet. It has no memory,
/// and asking for its sizes would make them fixed in what is compiled.
inline bool has_symbolic_sizes(const at::Tensor& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

/// Whether there is such a tensor, or a size that is not known yet, in `value` or in its list.
inline bool is_symbolic(const c10::IValue& value) {
  if (value.isTensor()) return has_symbolic_sizes(value.toTensor());
  if (value.isSymInt() || value.isSymFloat() || value.isSymBool()) return true;
  if (!value.isList()) return false;
  const auto elements = value.toListRef();
  return std::any_of(elements.begin(), elements.end(), is_symbolic);
}

/// Calls `visit(tensor)` for the tensor that `value` holds, or for each tensor of the list that it
/// holds. A number that libtorch wrapped as a tensor, such as the 2 of `tensor * 2`, does not
/// count, nor do tensors with symbolic sizes.
template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
    if (!has_symbolic_sizes(tensor)) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, visit);
  }
}

}  // namespace sim
