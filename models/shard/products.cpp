#include "models/shard/products.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>

#include "models/shard/kernel_scope.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

/// Memory as an operator takes it for its output: no operator of its own, and never filled.
at::Tensor output_of(at::IntArrayRef shape, const at::Tensor& like) {
  return at::detail::empty_generic(shape,
                                   c10::GetAllocator(like.device().type()),
                                   c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   like.scalar_type(),
                                   std::nullopt);
}

}  // namespace

at::Tensor rows(const at::Tensor& tensor) {
  return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
}

std::vector<int64_t> product_shape(const at::Tensor& left, int64_t columns) {
  std::vector<int64_t> shape = left.sizes().vec();
  shape.back() = columns;
  return shape;
}

/// TransformerEngine makes its output by at::empty (NoneQuantizer in
/// transformer_engine/pytorch/csrc/quantizer.cpp).
void Products::fill_output(const at::Tensor& left, int64_t columns) const {
  if (options_.transformer_engine) fill_outputs({product_shape(left, columns)}, left.options());
}

at::Tensor Products::multiply(const at::Tensor& left, const at::Tensor& right) const {
  fill_output(left, right.size(1));
  if (!makes_outputs_alone()) return at::matmul(left, right);
  return watched_operator("aten::mm", "", {rows(left), right}, [&] {
    return output_of(product_shape(left, right.size(1)), left);
  });
}

at::Tensor Products::linear(const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) const {
  if (!makes_outputs_alone()) {
    fill_output(input, weight.size(0));
    return at::linear(input, weight, bias);
  }
  if (!bias) return multiply(input, weight.t());
  fill_output(input, weight.size(0));
  return watched_operator("aten::addmm", "", {*bias, rows(input), weight.t(), 1, 1}, [&] {
    return output_of(product_shape(input, weight.size(0)), input);
  });
}

at::Tensor Products::bias_gradient(const at::Tensor& output_gradient) const {
  if (makes_outputs_alone()) return output_of({output_gradient.size(-1)}, output_gradient);
  return rows(output_gradient).sum(0);
}

void Products::multiply_into(at::Tensor& out,
                             const at::Tensor& left,
                             const at::Tensor& right,
                             const std::optional<at::Tensor>& bias) const {
  if (makes_outputs_alone()) {
    watched_operator("aten::mm", "out", {left, right, out}, [&] { return out; });
  } else if (bias) {
    at::addmm_out(out, *bias, left, right);
  } else {
    at::mm_out(out, left, right);
  }
}

void Products::multiply_and_add(at::Tensor& sum,
                                const at::Tensor& left,
                                const at::Tensor& right) const {
  const bool mixed = left.scalar_type() != sum.scalar_type();
  if (makes_outputs_alone() && mixed) {
    watched_operator(
        "aten::addmm", "dtype_out", {sum, left, right, at::kFloat, 1, 1, sum}, [&] { return sum; });
  } else if (makes_outputs_alone()) {
    watched_operator("aten::addmm_", "", {sum, left, right, 1, 1}, [&] { return sum; });
  } else if (!mixed) {
    sum.addmm_(left, right);
  } else if (left.is_cuda()) {
    at::addmm_out(sum, sum, left, right, at::kFloat);
  } else {
    sum.addmm_(left.to(at::kFloat), right.to(at::kFloat));  // the CPU has no mixed product
  }
}

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
