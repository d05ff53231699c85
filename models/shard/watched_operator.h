// Operators of which, on the virtual GPU, there is nothing but their memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <initializer_list>
#include <vector>

namespace models {

/// The operator as those who watch see it, with nothing computed and nothing allocated but what
/// `make` allocates, which gives its output.
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
