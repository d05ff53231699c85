#include "models/weight_gradient.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace models {
namespace {

at::Tensor rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

}  // namespace

at::Tensor weight_gradient(const at::Tensor& output_gradient, const at::Tensor& input) {
  return at::mm(rows(output_gradient).t(), rows(input));
}

void add_weight_gradient(Parameter& parameter,
                         const at::Tensor& output_gradient,
                         const at::Tensor& input) {
  at::Tensor& sum = parameter.main_gradient;
  const at::Tensor left = rows(output_gradient).t();
  const at::Tensor right = rows(input);
  if (left.scalar_type() == at::kFloat) {
    sum.addmm_(left, right);
  } else if (left.is_cuda()) {
    at::addmm_out(sum, sum, left, right, at::kFloat);
  } else {
    sum.addmm_(left.to(at::kFloat), right.to(at::kFloat));  // the CPU has no mixed product
  }
  parameter.contribution_added();
}

}  // namespace models
