// Finds the tensors in the inputs or outputs of an operator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace sim {

/// Calls `visit(tensor)` for the tensor that `value` holds, or for each tensor of the list that it
/// holds. A number that libtorch wrapped as a tensor, such as the 2 of `tensor * 2`, does not
/// count.
template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, visit);
  }
}

}  // namespace sim
