#include "models/layers/weight_gradient.h"

namespace models {

at::Tensor weight_gradient(const Products& products,
                           const at::Tensor& output_gradient,
                           const at::Tensor& input) {
  return products.multiply(rows(output_gradient).t(), rows(input));
}

void add_weight_gradient(const Products& products,
                         Parameter& parameter,
                         const at::Tensor& output_gradient,
                         const at::Tensor& input) {
  products.multiply_and_add(parameter.main_gradient, rows(output_gradient).t(), rows(input));
  parameter.contribution_added();
}

}  // namespace models
