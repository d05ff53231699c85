// Where weight gradients of linear layers go.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/parameters.h"
#include "models/shard/products.h"

namespace models {

/// output_gradient^T x input, both [..., features], as autograd wants it: in the weight's type.
at::Tensor weight_gradient(const Products& products,
                           const at::Tensor& output_gradient,
                           const at::Tensor& input);

/// main_gradient += output_gradient^T x input in one product with fp32 accumulation, no temporary
/// of the weight's size.
void add_weight_gradient(const Products& products,
                         Parameter& parameter,
                         const at::Tensor& output_gradient,
                         const at::Tensor& input);

}  // namespace models
