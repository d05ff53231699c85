#include "models/products.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/record_function.h>

#include "models/stand_in_output.h"

namespace models {
namespace {

using Inputs = std::initializer_list<c10::IValue>;

/// [..., k] as a matrix; a matrix as it lies.
at::Tensor rows(const at::Tensor& tensor) {
  return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
}

std::vector<int64_t> product_shape(const at::Tensor& left, int64_t columns) {
  std::vector<int64_t> shape = left.sizes().vec();
  shape.back() = columns;
  return shape;
}

/// Memory as an operator takes it for its output: no operator of its own, and never filled.
at::Tensor output_of(at::IntArrayRef shape, const at::Tensor& like) {
  return at::detail::empty_generic(shape,
                                   c10::GetAllocator(like.device().type()),
                                   c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   like.scalar_type(),
                                   std::nullopt);
}

/// The operator as those who watch see it, with nothing computed: `make` gives its output.
template <class Make>
at::Tensor watched(const char* name, const char* overload, Inputs inputs, const Make& make) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  at::RecordFunction watch(at::RecordScope::FUNCTION);
  if (watch.isActive())
    watch.before(op.schema(), c10::ArrayRef<const c10::IValue>(inputs.begin(), inputs.size()));
  at::Tensor output = make();
  if (watch.needsOutputs()) watch.setOutputs(std::vector<c10::IValue>{output});
  return output;
}

}  // namespace

/// TransformerEngine makes its output by at::empty (NoneQuantizer in
/// transformer_engine/pytorch/csrc/quantizer.cpp).
void Products::fill_output(const at::Tensor& left, int64_t columns) const {
  if (options_.transformer_engine) fill_outputs({product_shape(left, columns)}, left.options());
}

at::Tensor Products::multiply(const at::Tensor& left, const at::Tensor& right) const {
  fill_output(left, right.size(1));
  if (!makes_outputs_alone()) return at::matmul(left, right);
  return watched("aten::mm", "", {rows(left), right}, [&] {
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
  return watched("aten::addmm", "", {*bias, rows(input), weight.t(), 1, 1}, [&] {
    return output_of(product_shape(input, weight.size(0)), input);
  });
}

void Products::multiply_into(at::Tensor& out,
                             const at::Tensor& left,
                             const at::Tensor& right) const {
  if (makes_outputs_alone()) {
    watched("aten::mm", "out", {left, right, out}, [&] { return out; });
  } else {
    at::mm_out(out, left, right);
  }
}

void Products::multiply_and_add(at::Tensor& sum,
                                const at::Tensor& left,
                                const at::Tensor& right) const {
  const bool mixed = left.scalar_type() != at::kFloat;
  if (makes_outputs_alone() && mixed) {
    watched(
        "aten::addmm", "dtype_out", {sum, left, right, at::kFloat, 1, 1, sum}, [&] { return sum; });
  } else if (makes_outputs_alone()) {
    watched("aten::addmm_", "", {sum, left, right, 1, 1}, [&] { return sum; });
  } else if (!mixed) {
    sum.addmm_(left, right);
  } else if (left.is_cuda()) {
    at::addmm_out(sum, sum, left, right, at::kFloat);
  } else {
    sum.addmm_(left.to(at::kFloat), right.to(at::kFloat));  // the CPU has no mixed product
  }
}

}  // namespace models
