// Weight gradients of linear layers: returned to autograd, or added to the main gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/parameters.h"
#include "models/shard/products.h"

namespace models {

/// output_gradient^T x input in the weight's type, as autograd needs it. Both are [..., features].
at::Tensor weight_gradient(const Products& products,
                           const at::Tensor& output_gradient,
                           const at::Tensor& input);

/// main_gradient += output_gradient^T x input, in one product with fp32 accumulation and without a
/// temporary of the weight's size.
void add_weight_gradient(const Products& products,
                         Parameter& parameter,
                         const at::Tensor& output_gradient,
                         const at::Tensor& input);

}  // namespace models
