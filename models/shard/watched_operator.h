// Operators that only allocate their output on the virtual GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <initializer_list>
#include <vector>

namespace models {

/// Reports a call of the operator to those who watch operators, without running it. Nothing is
/// computed; `make` allocates and returns the output.
template <class Make>
at::Tensor watched_operator(const char* name,
                            const char* overload,
                            std::initializer_list<c10::IValue> inputs,
                            const Make& make) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  at::RecordFunction watch(at::RecordScope::FUNCTION);
  if (watch.isActive())
    watch.before(op.schema(), c10::ArrayRef<const c10::IValue>(inputs.begin(), inputs.size()));
  at::Tensor output = make();
  if (watch.needsOutputs()) watch.setOutputs(std::vector<c10::IValue>{output});
  return output;
}

}  // namespace models
