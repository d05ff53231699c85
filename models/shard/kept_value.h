// Carries a C++ value from an autograd function's forward to its backward.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace models {

template <class T>
struct KeptValue : torch::CustomClassHolder {
  explicit KeptValue(T kept) : value(std::move(kept)) {}
  T value;
};

template <class T>
void keep(torch::autograd::AutogradContext* context, T value) {
  auto holder = c10::make_intrusive<KeptValue<T>>(std::move(value));
  context->saved_data["kept"] = c10::IValue::make_capsule(std::move(holder));
}

/// The value that keep<T>() stored. It lives as long as the graph node.
template <class T>
T& kept(torch::autograd::AutogradContext* context) {
  const auto capsule = context->saved_data["kept"].toCapsule();
  return c10::static_intrusive_pointer_cast<KeptValue<T>>(capsule)->value;
}

}  // namespace models
