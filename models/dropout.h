#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/native_dropout.h>

namespace models {

/// Keeps a mask of one byte for each element; probability 0 keeps nothing.
inline at::Tensor dropout(const at::Tensor& input, double probability) {
  if (probability == 0) return input;
  return std::get<0>(at::native_dropout(input, probability, /*train=*/true));
}

/// residual + dropout(output + bias); an undefined bias is none.
inline at::Tensor bias_dropout_add(const at::Tensor& output,
                                   const at::Tensor& bias,
                                   const at::Tensor& residual,
                                   double probability) {
  return residual + dropout(bias.defined() ? output + bias : output, probability);
}

}  // namespace models
