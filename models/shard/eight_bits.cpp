#include "models/shard/eight_bits.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "estimator/hardware/hardware.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

/// The largest number of the type.
double largest(c10::ScalarType type) { return type == at::kFloat8_e5m2 ? 57344 : 448; }

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
  find_scale(tensor, held, type, group);
  fill(held, tensor);
  return held;
}

void EightBitProducts::quantize_into(EightBits& held, const at::Tensor& tensor) const {
  find_scale(tensor, held, held.by_rows.scalar_type(), nullptr);
  fill(held, tensor);
}

/// Megatron-LM's recipe "delayed" has found it in earlier iterations; where values count, it is
/// found here, too.
void EightBitProducts::find_scale(const at::Tensor& tensor,
                                  EightBits& held,
                                  c10::ScalarType type,
                                  const std::shared_ptr<Communicator>& group) const {
  if (!finds_scale_ && !device_computes_) return;
  const at::Tensor largest_element = at::empty({1}, held.scale.options());
  const auto in_kernel = [&](const char* name, const at::Tensor& read, const auto& run) {
    KernelScope kernel(name);
    if (device_computes_) run();
    kernel.moves({read}, {largest_element});
  };
  in_kernel("te::zero_amax", at::Tensor(), [&] { largest_element.zero_(); });
  in_kernel("te::amax", tensor, [&] { largest_element.copy_(tensor.abs().amax()); });
  if (group) group->all_reduce_max(largest_element);
  in_kernel("te::compute_scale_from_amax", held.scale, [&] {
    held.scale.copy_(largest_element.div(largest(type)).clamp_min(1e-30));
  });
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
  if (one_copy_ || held.by_columns.defined()) return;
  const at::Tensor matrix = rows(held.by_rows);
  held.by_columns = as_kernel("te::transpose", {held.by_rows}, [&] {
    at::Tensor columns = at::empty({matrix.size(1), matrix.size(0)}, matrix.options());
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
