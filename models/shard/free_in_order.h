// The order in which variables give their memory back, where a program in Python is followed.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

namespace models {

/// As Python frees the variables of a function that ends, the first first; C++ would begin with the
/// last.
inline void free_in_order(std::initializer_list<at::Tensor*> variables) {
  for (at::Tensor* variable : variables) variable->reset();
}

}  // namespace models
