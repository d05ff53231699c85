#include "models/shard/eight_bits.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "estimator/hardware/hardware.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

double largest_number(c10::ScalarType type) { return type == at::kFloat8_e5m2 ? 57344 : 448; }

bool reads_one_copy(const estimator::Plan& plan) {
  constexpr double kBlackwell = 10;
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  return gpu != nullptr && gpu->capability() >= kBlackwell;
}

at::Tensor in_fp32(const EightBitOperand& operand) {
  return operand.matrix.to(at::kFloat).mul(operand.scale);
}

}  // namespace

EightBitOperand EightBits::along_rows() const { return {rows(by_rows), scale}; }

EightBitOperand EightBits::along_columns() const {
  return {by_columns.defined() ? by_columns.t() : rows(by_rows), scale};
}

EightBitProducts::EightBitProducts(const estimator::Plan& plan, bool device_computes)
    : finds_scale_(plan.training.fp8_recipe == estimator::Fp8Recipe::kTensorwise),
      one_copy_(reads_one_copy(plan)),
      device_computes_(device_computes),
      gradient_type_(plan.training.fp8_format == estimator::Fp8Format::kHybrid
                         ? at::kFloat8_e5m2
                         : at::kFloat8_e4m3fn) {}

EightBits EightBitProducts::quantize(const at::Tensor& tensor,
                                     c10::ScalarType type,
                                     EightBitUse use,
                                     const std::shared_ptr<Communicator>& group) const {
  const at::TensorOptions bits = tensor.options().dtype(type).requires_grad(false);
  EightBits held;
  if (use.rows || one_copy_) held.by_rows = at::empty(tensor.sizes(), bits);
  if (use.columns && !one_copy_) {
    held.by_columns = at::empty({tensor.size(-1), tensor.numel() / tensor.size(-1)}, bits);
  }
  held.scale = at::empty({1}, bits.dtype(at::kFloat));
  find_scale(tensor, held, group);
  fill(held, tensor);
  return held;
}

void EightBitProducts::quantize_into(EightBits& held, const at::Tensor& tensor) const {
  find_scale(tensor, held, nullptr);
  fill(held, tensor);
}

/// Megatron-LM's recipe "delayed" has found it in earlier iterations; where values count, it is
/// found here, too.
void EightBitProducts::find_scale(const at::Tensor& tensor,
                                  EightBits& held,
                                  const std::shared_ptr<Communicator>& group) const {
  if (!measures()) return;
  const at::Tensor largest = at::empty({1}, held.scale.options());
  {
    KernelScope kernel("te::zero_amax");
    if (device_computes_) largest.zero_();
    kernel.moves({}, {largest});
  }
  measure(tensor, largest);
  if (group) group->all_reduce_max(largest);
  set_scale(held, largest);
}

void EightBitProducts::measure(const at::Tensor& values, const at::Tensor& largest) const {
  KernelScope kernel("te::amax");
  if (device_computes_) largest.copy_(values.abs().amax());
  kernel.moves({values}, {largest});
}

void EightBitProducts::set_scale(EightBits& held, const at::Tensor& largest) const {
  KernelScope kernel("te::compute_scale_from_amax");
  if (device_computes_) {
    const c10::ScalarType type =
        (held.by_rows.defined() ? held.by_rows : held.by_columns).scalar_type();
    held.scale.copy_(largest.div(largest_number(type)).clamp_min(1e-30));
  }
  kernel.moves({held.scale}, {largest});
}

/// Of the part TransformerEngine makes a transpose, too, which nobody reads.
void EightBitProducts::write_part(const EightBits& held,
                                  const at::Tensor& part,
                                  const at::Tensor& values) const {
  EightBits written{.by_rows = part, .by_columns = {}, .scale = held.scale};
  if (!one_copy_) written.by_columns = at::empty({part.numel(), 1}, part.options());
  fill(written, values);
}

void EightBitProducts::fill(EightBits& held, const at::Tensor& tensor) const {
  KernelScope kernel("te::quantize");
  if (device_computes_) {
    const at::Tensor scaled = tensor.detach().to(at::kFloat).div(held.scale);
    if (held.by_rows.defined()) held.by_rows.copy_(scaled);
    if (held.by_columns.defined()) held.by_columns.copy_(rows(scaled).t());
  }
  kernel.moves({tensor}, {held.by_rows, held.by_columns, held.scale});
}

void EightBitProducts::transpose(EightBits& held) const {
  if (one_copy_) return;
  const at::Tensor matrix = rows(held.by_rows);
  held.by_columns = as_kernel("te::transpose", {held.by_rows}, [&] {
    at::Tensor columns = held.by_columns.defined()
                             ? held.by_columns
                             : at::empty({matrix.size(1), matrix.size(0)}, matrix.options());
    if (device_computes_) columns.copy_(matrix.t());
    return columns;
  });
}

at::Tensor EightBitProducts::multiply(const EightBitOperand& left,
                                      const EightBitOperand& right,
                                      c10::ScalarType result,
                                      const std::optional<at::Tensor>& bias) const {
  if (device_computes_) {
    const at::Tensor product = at::mm(in_fp32(left), in_fp32(right));
    return (bias ? product.add_(*bias) : product).to(result);
  }
  return watched_operator(
      "aten::_scaled_mm",
      "",
      {left.matrix, right.matrix, left.scale, right.scale, bias, c10::IValue(), result, true},
      [&] {
        return at::empty({left.matrix.size(0), right.matrix.size(1)},
                         left.scale.options().dtype(result));
      });
}

void EightBitProducts::multiply_and_add(at::Tensor& sum,
                                        const EightBitOperand& left,
                                        const EightBitOperand& right) const {
  if (device_computes_) {
    sum.add_(at::mm(in_fp32(left), in_fp32(right)));
    return;
  }
  watched_operator("aten::_scaled_mm",
                   "out",
                   {left.matrix,
                    right.matrix,
                    left.scale,
                    right.scale,
                    c10::IValue(),
                    c10::IValue(),
                    at::kFloat,
                    true,
                    sum},
                   [&] { return sum; });
}

}  // namespace models
