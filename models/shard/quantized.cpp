#include "models/shard/quantized.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <utility>

#include "estimator/hardware/hardware.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"
#include "models/shard/quantized_memory.h"
#include "models/shard/quantized_values.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

bool reads_one_copy(const estimator::Plan& plan) {
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  return gpu != nullptr && gpu->capability() >= estimator::kBlackwell;
}

/// cuBLASLt reads the scales of blocks in an order of its own (swizzle_scales_for_gemm in
/// transformer_engine/pytorch/csrc/extensions/swizzle.cpp).
at::Tensor ready_scale(const QuantizedOperand& operand) {
  if (operand.scale_is_ready || has_fp32_blocks(operand.scale)) return operand.scale;
  return as_kernel(
      "te::swizzle_scales", {operand.scale}, [&] { return at::empty_like(operand.scale); });
}

at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.view(at::kByte); }

at::TensorOptions options_of(const at::Tensor& tensor, c10::ScalarType type) {
  return tensor.options().dtype(type).requires_grad(false);
}

/// What a product of matrices in 4 bits is multiplied by, from the largest elements of both
/// (nvte_nvfp4_compute_per_tensor_scale).
void scale_product(const QuantizedOperand& left, const QuantizedOperand& right) {
  if (!left.largest.defined()) return;
  KernelScope kernel("te::nvfp4_per_tensor_scale");
  kernel.moves({left.largest, right.largest}, {left.largest});
}

/// On a GPU that computes nothing.
void note_product(at::Tensor& out, const QuantizedOperand& left, const QuantizedOperand& right) {
  watched_operator("aten::_scaled_mm",
                   "out",
                   {left.matrix,
                    right.matrix,
                    ready_scale(left),
                    ready_scale(right),
                    c10::IValue(),
                    c10::IValue(),
                    out.scalar_type(),
                    true,
                    out},
                   [&] { return out; });
}

}  // namespace

QuantizedOperand QuantizedOperand::transposed() const {
  return {matrix.t(), scale.dim() == 2 ? scale.t() : scale, largest, scale_is_ready};
}

QuantizedOperand Quantized::along_rows() const {
  return {rows(by_rows), scale_of_rows, largest_of_rows, scales_are_ready};
}

/// The operand is [m, k], and what its products sum are its columns.
QuantizedOperand Quantized::along_columns() const {
  if (!by_columns.defined()) return along_rows();
  return QuantizedOperand{by_columns, scale_of_columns, largest_of_columns, scales_are_ready}
      .transposed();
}

std::vector<at::Tensor> Quantized::tensors() const {
  std::vector<at::Tensor> held;
  for (const at::Tensor& tensor : {by_rows, by_columns, scale_of_rows}) {
    if (tensor.defined()) held.push_back(tensor);
  }
  const bool has_two_scales =
      scale_of_columns.defined() && !scale_of_columns.is_same(scale_of_rows);
  if (has_two_scales) held.push_back(scale_of_columns);
  for (const at::Tensor& largest : {largest_of_rows, largest_of_columns}) {
    if (largest.defined()) held.push_back(largest);
  }
  return held;
}

QuantizedProducts::QuantizedProducts(const estimator::Plan& plan, bool device_computes)
    : traits_(estimator::quantization_of(plan.training)),
      one_copy_(!has_blocks() && reads_one_copy(plan)),
      device_computes_(device_computes),
      gradient_type_(plan.training.fp8_format == estimator::Fp8Format::kHybrid
                         ? at::kFloat8_e5m2
                         : at::kFloat8_e4m3fn) {}

/// Of weights and inputs, and of output gradients (--fp8-format hybrid: e5m2).
c10::ScalarType QuantizedProducts::type_of(QuantizedRole role) const {
  if (in_four_bits()) return at::kFloat4_e2m1fn_x2;
  return role == QuantizedRole::kGradient ? gradient_type_ : at::kFloat8_e4m3fn;
}

Quantized QuantizedProducts::quantize(const at::Tensor& tensor,
                                      QuantizedRole role,
                                      QuantizedUse use,
                                      const std::shared_ptr<Communicator>& group) const {
  use.squares = traits_.fp32_scales && role == QuantizedRole::kWeight;
  Quantized held = QuantizedMemory(traits_, one_copy_)
                       .empty_with_scale(tensor.sizes(), options_of(tensor, type_of(role)), use);
  find_scale(tensor, held, role, group, use.of_norm);
  fill(held, tensor, role, use.of_norm);
  return held;
}

std::vector<Quantized> QuantizedProducts::quantize_parts(const at::Tensor& tensor,
                                                         const std::vector<int64_t>& rows_of,
                                                         QuantizedRole role,
                                                         QuantizedUse use) const {
  std::vector<Quantized> parts =
      QuantizedMemory(traits_, one_copy_)
          .empty_parts(rows_of, tensor.size(1), options_of(tensor, type_of(role)), use);
  const std::vector<at::Tensor> values = tensor.split_with_sizes(rows_of);
  if (in_four_bits()) {
    find_largest(parts, values, role, nullptr);
    fill_four_bits(parts, values, role);
    return parts;
  }
  const bool in_one = !finds_scale() && parts.front().by_columns.defined();
  KernelScope kernel(in_one ? "te::multi_cast_transpose" : nullptr);
  std::vector<at::Tensor> written;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    find_scale(values[i], parts[i], role, nullptr);
    fill(parts[i], values[i], role);
    written.insert(written.end(), {parts[i].by_rows, parts[i].by_columns});
  }
  kernel.moves({tensor}, written);
  return parts;
}

void QuantizedProducts::quantize_into(Quantized& held, const at::Tensor& tensor) const {
  find_scale(tensor, held, QuantizedRole::kWeight, nullptr);
  fill(held, tensor, QuantizedRole::kWeight);
}

void QuantizedProducts::read(const Quantized& held, const at::Tensor& values) const {
  const KernelScope unrecorded("te::dequantize");
  if (device_computes_) values.copy_(in_fp32(held.along_rows()).view(values.sizes()));
}

/// Megatron-LM's recipe "delayed" has found it in earlier iterations; where values count, it is
/// found here, too.
void QuantizedProducts::find_scale(const at::Tensor& tensor,
                                   Quantized& held,
                                   QuantizedRole role,
                                   const std::shared_ptr<Communicator>& group,
                                   bool of_norm) const {
  if (!measures()) return;
  if (in_four_bits()) return find_largest({&held, 1}, {tensor}, role, group);
  const at::Tensor largest = at::empty({1}, held.scale_of_rows.options());
  {
    KernelScope kernel("te::zero_amax");
    if (device_computes_) largest.zero_();
    kernel.moves({}, {largest});
  }
  {
    const KernelScope norm(of_norm ? "te::norm" : nullptr);
    measure(tensor, largest);
  }
  if (group) group->all_reduce_max(largest);
  set_scale(held, largest);
}

void QuantizedProducts::measure(const at::Tensor& values, const at::Tensor& largest) const {
  KernelScope kernel("te::amax");
  if (device_computes_) largest.copy_(values.abs().amax());
  kernel.moves({values}, {largest});
}

void QuantizedProducts::set_scale(Quantized& held, const at::Tensor& largest) const {
  KernelScope kernel("te::compute_scale_from_amax");
  if (device_computes_) {
    const c10::ScalarType type =
        (held.by_rows.defined() ? held.by_rows : held.by_columns).scalar_type();
    held.scale_of_rows.copy_(largest.div(largest_number(type)).clamp_min(1e-30));
  }
  kernel.moves({held.scale_of_rows}, {largest});
}

/// Of the part TransformerEngine makes a transpose, too, which nobody reads.
void QuantizedProducts::write_part(const Quantized& held,
                                   const at::Tensor& part,
                                   const at::Tensor& values) const {
  Quantized written{.by_rows = part,
                    .by_columns = {},
                    .scale_of_rows = held.scale_of_rows,
                    .scale_of_columns = held.scale_of_columns};
  if (!one_copy_) written.by_columns = at::empty({part.numel(), 1}, part.options());
  fill(written, values, QuantizedRole::kWeight);
}

void QuantizedProducts::fill(Quantized& held,
                             const at::Tensor& tensor,
                             QuantizedRole role,
                             bool of_norm) const {
  if (in_four_bits()) return fill_four_bits({&held, 1}, {tensor}, role);
  const bool has_rows = of_norm && !finds_scale();
  KernelScope kernel(has_rows ? "te::transpose" : "te::quantize");
  if (device_computes_) {
    const at::Tensor values = rows(tensor.detach().to(at::kFloat));
    const auto write =
        [&](const at::Tensor& matrix, const at::Tensor& scale, const at::Tensor& of) {
          if (!matrix.defined()) return;
          if (has_blocks()) {
            write_blocks(matrix, scale, of);
          } else {
            matrix.copy_(of.div(scale));
          }
        };
    write(held.by_rows.defined() ? rows(held.by_rows) : held.by_rows, held.scale_of_rows, values);
    write(held.by_columns, held.scale_of_columns, values.t());
  }
  if (!has_rows) return kernel.moves({tensor}, held.tensors());
  if (held.by_columns.defined()) kernel.moves({held.by_rows}, {held.by_columns});
}

/// post_all_gather_processing in transformer_engine/pytorch/tensor/utils.py
void QuantizedProducts::transpose(Quantized& held) const {
  if (held.arrived_columns.defined()) return join_columns(held);
  if (in_four_bits()) return transpose_squares(held);
  if (one_copy_ || has_blocks()) return;
  const at::Tensor matrix = rows(held.by_rows);
  held.by_columns = as_kernel("te::transpose", {held.by_rows}, [&] {
    at::Tensor columns = held.by_columns.defined()
                             ? held.by_columns
                             : at::empty({matrix.size(1), matrix.size(0)}, matrix.options());
    if (device_computes_) columns.copy_(matrix.t());
    return columns;
  });
}

/// Parts of a matrix of one scale have the same one.
Quantized QuantizedProducts::memory_for_all(const Quantized& part,
                                            const Communicator& group) const {
  const QuantizedMemory memory(traits_, one_copy_);
  const bool has_rows = part.by_rows.defined();
  std::vector<int64_t> shape = memory.shape_of(part);
  shape[0] *= group.size();
  const bool has_columns = has_blocks() && part.by_columns.defined();
  Quantized whole = memory.empty(shape,
                                 (has_rows ? part.by_rows : part.by_columns).options(),
                                 {.rows = has_rows, .columns = has_columns, .waits = true});
  if (!has_blocks()) whole.scale_of_rows = whole.scale_of_columns = part.scale_of_rows;
  whole.largest_of_rows = part.largest_of_rows;
  whole.largest_of_columns = part.largest_of_columns;
  if (traits_.transposes) expect_columns(whole, part, group.size());
  return whole;
}

/// _start_all_gather_fp8_blockwise in transformer_engine/pytorch/distributed.py
PendingCall QuantizedProducts::gather_fp32_blocks(const Quantized& whole,
                                                  const Quantized& part,
                                                  Communicator& group) const {
  std::vector<at::Tensor> outputs, inputs;
  const auto add = [&](const at::Tensor& of_all, const at::Tensor& own) {
    outputs.push_back(of_all);
    inputs.push_back(own);
  };
  if (part.by_rows.defined()) {
    add(whole.arrived_scale, part.scale_of_rows.t());
    add(as_bytes(rows(whole.by_rows)), as_bytes(rows(part.by_rows)));
  }
  if (part.by_columns.defined()) {
    add(whole.scale_of_columns.t(), part.scale_of_columns.t());
    add(as_bytes(whole.arrived_columns), as_bytes(part.by_columns));
  }
  return group.start_all_gather(std::move(outputs), std::move(inputs));
}

PendingCall QuantizedProducts::gather(Quantized& whole,
                                      const Quantized& part,
                                      Communicator& group,
                                      bool overlaps) const {
  if (traits_.fp32_scales) {
    PendingCall call = gather_fp32_blocks(whole, part, group);
    if (overlaps && !part.by_rows.defined()) return call;
    call.wait();
    join_row_scales(whole);
    return PendingCall();
  }
  if (!has_blocks()) {
    const at::Tensor output = as_bytes(whole.by_rows), input = as_bytes(part.by_rows).contiguous();
    if (overlaps) return group.start_all_gather(output, input);
    group.all_gather(output, input);
    return PendingCall();
  }
  std::vector<at::Tensor> outputs, inputs;
  const auto add = [&](const at::Tensor& of_all, const at::Tensor& own, int64_t own_rows) {
    outputs.push_back(as_bytes(in_memory_order(of_all)).narrow(0, 0, own_rows * group.size()));
    inputs.push_back(as_bytes(in_memory_order(own)).narrow(0, 0, own_rows));
  };
  if (part.by_rows.defined()) {
    const int64_t m = rows(part.by_rows).size(0);
    add(whole.scale_of_rows, part.scale_of_rows, m);
    add(rows(whole.by_rows), rows(part.by_rows), m);
  }
  if (whole.arrived_columns.defined()) {
    outputs.insert(outputs.end(), {whole.arrived_scale, as_bytes(whole.arrived_columns)});
    inputs.insert(inputs.end(), {scales_without_padding(part), as_bytes(part.by_columns)});
  } else if (part.by_columns.defined()) {
    const int64_t m = part.by_columns.size(1);
    add(whole.scale_of_columns, part.scale_of_columns, m / kScaledTogether);
    add(whole.by_columns, part.by_columns, m);
  }
  PendingCall call = group.start_all_gather(std::move(outputs), std::move(inputs));
  if (!overlaps) call.wait();
  return call;
}

at::Tensor QuantizedProducts::multiply(const QuantizedOperand& left,
                                       const QuantizedOperand& right,
                                       c10::ScalarType result,
                                       const std::optional<at::Tensor>& bias) const {
  scale_product(left, right);
  if (device_computes_) {
    const at::Tensor product = at::mm(in_fp32(left), right_in_fp32(right));
    return (bias ? product.add_(*bias) : product).to(result);
  }
  at::Tensor product =
      at::empty({left.matrix.size(0), right.matrix.size(1)}, left.matrix.options().dtype(result));
  return watched_operator("aten::_scaled_mm",
                          "",
                          {left.matrix,
                           right.matrix,
                           ready_scale(left),
                           ready_scale(right),
                           bias,
                           c10::IValue(),
                           result,
                           true},
                          [&] { return product; });
}

void QuantizedProducts::multiply_and_add(at::Tensor& sum,
                                         const QuantizedOperand& left,
                                         const QuantizedOperand& right) const {
  scale_product(left, right);
  if (!device_computes_) return note_product(sum, left, right);
  sum.add_(at::mm(in_fp32(left), right_in_fp32(right)));
}

void QuantizedProducts::multiply_into(at::Tensor& out,
                                      const QuantizedOperand& left,
                                      const QuantizedOperand& right) const {
  scale_product(left, right);
  if (!device_computes_) return note_product(out, left, right);
  out.copy_(at::mm(in_fp32(left), right_in_fp32(right)));
}

/// multi_tensor_swizzle_scales_for_gemm in pytorch/csrc/extensions/swizzle.cpp
std::vector<QuantizedOperand> QuantizedProducts::ready(
    std::vector<QuantizedOperand> operands) const {
  constexpr int64_t kAlignment = 16;
  if (device_computes_ || operands.empty() || operands.front().scale_is_ready ||
      has_fp32_blocks(operands.front().scale)) {
    return operands;
  }
  std::vector<Place> places;
  std::vector<at::Tensor> scales;
  for (const QuantizedOperand& operand : operands) {
    scales.push_back(operand.scale);
    places.push_back({in_memory_order(operand.scale).sizes().vec(), kAlignment});
  }
  const std::vector<at::Tensor> swizzled = as_kernel("te::swizzle_scales", scales, [&] {
    return in_one_allocation(places, /*slack=*/0, scales.front().options());
  });
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool in_order = operands[i].scale.is_contiguous();
    operands[i].scale = in_order ? swizzled[i] : swizzled[i].t();
    operands[i].scale_is_ready = true;
  }
  return operands;
}

}  // namespace models
