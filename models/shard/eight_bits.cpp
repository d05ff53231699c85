#include "models/shard/eight_bits.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <tuple>
#include <utility>

#include "estimator/hardware/hardware.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

double largest_number(c10::ScalarType type) { return type == at::kFloat8_e5m2 ? 57344 : 448; }

bool reads_one_copy(const estimator::Plan& plan) {
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  return gpu != nullptr && gpu->capability() >= estimator::kBlackwell;
}

constexpr int64_t kBlock = 32;  // elements that a product sums, of one scale

int64_t padded(int64_t size, int64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

using Shape = std::vector<int64_t>;

/// Of the scales of blocks of a matrix [rows, columns], by rows and by columns
/// (MXFP8Quantizer::get_scale_shape).
Shape scales_of_rows(int64_t rows, int64_t columns) {
  return {padded(rows, 128), padded(columns / kBlock, 4)};
}
Shape scales_of_columns(int64_t rows, int64_t columns) {
  return {padded(rows / kBlock, 4), padded(columns, 128)};
}

struct Place {
  Shape shape;
  int64_t alignment;
};

/// Tensors of bytes in one allocation, one after the other.
std::vector<at::Tensor> in_one_allocation(const std::vector<Place>& places,
                                          int64_t slack,
                                          const at::TensorOptions& options) {
  std::vector<int64_t> offsets;
  offsets.reserve(places.size());
  int64_t bytes = 0;
  for (const Place& place : places) {
    offsets.push_back(padded(bytes, place.alignment));
    bytes = offsets.back() + c10::multiply_integers(place.shape);
  }
  const at::Tensor all = at::empty({bytes + slack}, options.dtype(at::kByte));
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const int64_t size = c10::multiply_integers(places[i].shape);
    tensors.push_back(all.narrow(0, offsets[i], size).view(places[i].shape));
  }
  return tensors;
}

/// A matrix and its scales for each part of `rows_of` rows, all in one allocation (bulk_allocate
/// in pytorch/csrc/extensions/allocate.cpp): the matrices, and then the scales.
std::vector<std::pair<at::Tensor, at::Tensor>> empty_parts(const std::vector<int64_t>& rows_of,
                                                           int64_t columns,
                                                           const at::TensorOptions& options,
                                                           Shape (*scales)(int64_t, int64_t)) {
  constexpr int64_t kOfMatrices = 256, kOfScales = 16;
  std::vector<Place> places;
  places.reserve(2 * rows_of.size());
  for (const int64_t rows : rows_of) places.push_back({{rows, columns}, kOfMatrices});
  for (const int64_t rows : rows_of) places.push_back({scales(rows, columns), kOfScales});
  const std::vector<at::Tensor> made = in_one_allocation(places, kOfMatrices, options);
  std::vector<std::pair<at::Tensor, at::Tensor>> parts;
  for (std::size_t i = 0; i < rows_of.size(); ++i) {
    parts.emplace_back(made[i].view(options.dtype().toScalarType()), made[rows_of.size() + i]);
  }
  return parts;
}

std::vector<EightBits> empty_blocks(const std::vector<int64_t>& rows_of,
                                    int64_t columns,
                                    const at::TensorOptions& options,
                                    EightBitUse use) {
  std::vector<EightBits> parts(rows_of.size(), EightBits{.scales_are_ready = !use.waits});
  if (use.rows) {
    const auto made = empty_parts(rows_of, columns, options, scales_of_rows);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::tie(parts[i].by_rows, parts[i].scale_of_rows) = made[i];
    }
  }
  if (use.columns) {
    const auto made = empty_parts(rows_of, columns, options, scales_of_columns);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].by_columns = made[i].first.t();
      parts[i].scale_of_columns = made[i].second.t();
    }
  }
  return parts;
}

/// One byte is the exponent of a power of two, plus this.
constexpr int64_t kExponentBias = 127;

at::Tensor blocks_of(const at::Tensor& matrix) { return matrix.unflatten(-1, {-1, kBlock}); }

/// [rows, blocks] in fp32.
at::Tensor factors(const at::Tensor& scale, const at::Tensor& matrix) {
  return at::exp2(scale.narrow(0, 0, matrix.size(0))
                      .narrow(1, 0, matrix.size(1) / kBlock)
                      .to(at::kFloat)
                      .sub(kExponentBias));
}

void write_scales(const at::Tensor& scale, const at::Tensor& values, c10::ScalarType type) {
  const at::Tensor exponents = blocks_of(values)
                                   .abs()
                                   .amax(-1)
                                   .div(largest_number(type))
                                   .log2()
                                   .ceil()
                                   .add(kExponentBias)
                                   .clamp(0, 254);
  scale.zero_();
  scale.narrow(0, 0, exponents.size(0)).narrow(1, 0, exponents.size(1)).copy_(exponents);
}

at::Tensor in_fp32(const EightBitOperand& operand) {
  const at::Tensor values = operand.matrix.to(at::kFloat);
  if (operand.scale.numel() == 1) return values.mul(operand.scale);
  return blocks_of(values).mul(factors(operand.scale, values).unsqueeze(-1)).flatten(-2);
}

/// A left operand; a right one, [k, n], has its scales along its columns.
at::Tensor right_in_fp32(const EightBitOperand& operand) {
  return in_fp32(operand.transposed()).t();
}

/// `values`: fp32 of the shape of `matrix`.
void write_blocks(const at::Tensor& matrix, const at::Tensor& scale, const at::Tensor& values) {
  write_scales(scale, values, matrix.scalar_type());
  matrix.copy_(blocks_of(values).div(factors(scale, values).unsqueeze(-1)).flatten(-2));
}

/// cuBLASLt reads the scales of blocks in an order of its own (swizzle_scales_for_gemm in
/// transformer_engine/pytorch/csrc/extensions/swizzle.cpp).
at::Tensor ready_scale(const EightBitOperand& operand) {
  if (operand.scale_is_ready) return operand.scale;
  return as_kernel(
      "te::swizzle_scales", {operand.scale}, [&] { return at::empty_like(operand.scale); });
}

at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : tensor.t();
}

at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.view(at::kByte); }

at::TensorOptions options_of(const at::Tensor& tensor, c10::ScalarType type) {
  return tensor.options().dtype(type).requires_grad(false);
}

/// On a GPU that computes nothing.
void note_product(at::Tensor& out, const EightBitOperand& left, const EightBitOperand& right) {
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

EightBitOperand EightBitOperand::transposed() const {
  return {matrix.t(), scale.dim() == 2 ? scale.t() : scale, scale_is_ready};
}

EightBitOperand EightBits::along_rows() const {
  return {rows(by_rows), scale_of_rows, scales_are_ready};
}

/// The operand is [m, k], and what its products sum are its columns.
EightBitOperand EightBits::along_columns() const {
  if (!by_columns.defined()) return along_rows();
  return EightBitOperand{by_columns, scale_of_columns, scales_are_ready}.transposed();
}

std::vector<at::Tensor> EightBits::tensors() const {
  std::vector<at::Tensor> held;
  for (const at::Tensor& tensor : {by_rows, by_columns, scale_of_rows}) {
    if (tensor.defined()) held.push_back(tensor);
  }
  const bool has_two_scales =
      scale_of_columns.defined() && !scale_of_columns.is_same(scale_of_rows);
  if (has_two_scales) held.push_back(scale_of_columns);
  return held;
}

EightBitProducts::EightBitProducts(const estimator::Plan& plan, bool device_computes)
    : recipe_(plan.training.fp8_recipe),
      one_copy_(!has_blocks() && reads_one_copy(plan)),
      device_computes_(device_computes),
      gradient_type_(plan.training.fp8_format == estimator::Fp8Format::kHybrid
                         ? at::kFloat8_e5m2
                         : at::kFloat8_e4m3fn) {}

EightBits EightBitProducts::empty(at::IntArrayRef shape,
                                  at::TensorOptions options,
                                  EightBitUse use) const {
  const int64_t k = shape.back(), m = c10::multiply_integers(shape) / k;
  EightBits held{.scales_are_ready = !has_blocks() || !use.waits};
  if (use.rows || one_copy_) {
    held.by_rows = at::empty(shape, options);
    if (has_blocks())
      held.scale_of_rows = at::empty(scales_of_rows(m, k), options.dtype(at::kByte));
  }
  if (use.columns && has_blocks()) {
    held.by_columns = at::empty({m, k}, options).t();
    held.scale_of_columns = at::empty(scales_of_columns(m, k), options.dtype(at::kByte)).t();
  } else if (use.columns && !one_copy_) {
    held.by_columns = at::empty({k, m}, options);
  }
  return held;
}

EightBits EightBitProducts::empty_with_scale(at::IntArrayRef shape,
                                             at::TensorOptions options,
                                             EightBitUse use) const {
  EightBits held = empty(shape, options, use);
  if (!has_blocks()) {
    held.scale_of_rows = at::empty({1}, options.dtype(at::kFloat));
    held.scale_of_columns = held.scale_of_rows;
  }
  return held;
}

EightBits EightBitProducts::quantize(const at::Tensor& tensor,
                                     c10::ScalarType type,
                                     EightBitUse use,
                                     const std::shared_ptr<Communicator>& group) const {
  EightBits held = empty_with_scale(tensor.sizes(), options_of(tensor, type), use);
  find_scale(tensor, held, group);
  fill(held, tensor);
  return held;
}

std::vector<EightBits> EightBitProducts::quantize_parts(const at::Tensor& tensor,
                                                        const std::vector<int64_t>& rows_of,
                                                        c10::ScalarType type,
                                                        EightBitUse use) const {
  const at::TensorOptions options = options_of(tensor, type);
  const int64_t columns = tensor.size(1);
  std::vector<EightBits> parts;
  if (has_blocks()) {
    parts = empty_blocks(rows_of, columns, options, use);
  } else {
    for (const int64_t rows : rows_of) {
      parts.push_back(empty_with_scale({rows, columns}, options, use));
    }
  }
  const std::vector<at::Tensor> values = tensor.split_with_sizes(rows_of);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    find_scale(values[i], parts[i], nullptr);
    fill(parts[i], values[i]);
  }
  return parts;
}

void EightBitProducts::quantize_into(EightBits& held, const at::Tensor& tensor) const {
  find_scale(tensor, held, nullptr);
  fill(held, tensor);
}

void EightBitProducts::read(const EightBits& held, const at::Tensor& values) const {
  const KernelScope unrecorded("te::dequantize");
  if (device_computes_) values.copy_(in_fp32(held.along_rows()).view(values.sizes()));
}

/// Megatron-LM's recipe "delayed" has found it in earlier iterations; where values count, it is
/// found here, too.
void EightBitProducts::find_scale(const at::Tensor& tensor,
                                  EightBits& held,
                                  const std::shared_ptr<Communicator>& group) const {
  if (!measures()) return;
  const at::Tensor largest = at::empty({1}, held.scale_of_rows.options());
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
    held.scale_of_rows.copy_(largest.div(largest_number(type)).clamp_min(1e-30));
  }
  kernel.moves({held.scale_of_rows}, {largest});
}

/// Of the part TransformerEngine makes a transpose, too, which nobody reads.
void EightBitProducts::write_part(const EightBits& held,
                                  const at::Tensor& part,
                                  const at::Tensor& values) const {
  EightBits written{.by_rows = part,
                    .by_columns = {},
                    .scale_of_rows = held.scale_of_rows,
                    .scale_of_columns = held.scale_of_columns};
  if (!one_copy_) written.by_columns = at::empty({part.numel(), 1}, part.options());
  fill(written, values);
}

void EightBitProducts::fill(EightBits& held, const at::Tensor& tensor) const {
  KernelScope kernel("te::quantize");
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
  kernel.moves({tensor}, held.tensors());
}

void EightBitProducts::transpose(EightBits& held) const {
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
EightBits EightBitProducts::memory_for_all(const EightBits& part, const Communicator& group) const {
  const bool has_rows = part.by_rows.defined();
  std::vector<int64_t> shape =
      has_rows ? part.by_rows.sizes().vec() : part.by_columns.t().sizes().vec();
  shape[0] *= group.size();
  const bool has_columns = has_blocks() && part.by_columns.defined();
  EightBits whole = empty(shape,
                          (has_rows ? part.by_rows : part.by_columns).options(),
                          {.rows = has_rows, .columns = has_columns, .waits = true});
  if (!has_blocks()) whole.scale_of_rows = whole.scale_of_columns = part.scale_of_rows;
  return whole;
}

PendingCall EightBitProducts::gather(const EightBits& whole,
                                     const EightBits& part,
                                     Communicator& group,
                                     bool overlaps) const {
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
  if (part.by_columns.defined()) {
    const int64_t m = part.by_columns.size(1);
    add(whole.scale_of_columns, part.scale_of_columns, m / kBlock);
    add(whole.by_columns, part.by_columns, m);
  }
  PendingCall call = group.start_all_gather(std::move(outputs), std::move(inputs));
  if (!overlaps) call.wait();
  return call;
}

at::Tensor EightBitProducts::multiply(const EightBitOperand& left,
                                      const EightBitOperand& right,
                                      c10::ScalarType result,
                                      const std::optional<at::Tensor>& bias) const {
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

void EightBitProducts::multiply_and_add(at::Tensor& sum,
                                        const EightBitOperand& left,
                                        const EightBitOperand& right) const {
  if (!device_computes_) return note_product(sum, left, right);
  sum.add_(at::mm(in_fp32(left), right_in_fp32(right)));
}

void EightBitProducts::multiply_into(at::Tensor& out,
                                     const EightBitOperand& left,
                                     const EightBitOperand& right) const {
  if (!device_computes_) return note_product(out, left, right);
  out.copy_(at::mm(in_fp32(left), right_in_fp32(right)));
}

/// multi_tensor_swizzle_scales_for_gemm in pytorch/csrc/extensions/swizzle.cpp
std::vector<EightBitOperand> EightBitProducts::ready(std::vector<EightBitOperand> operands) const {
  constexpr int64_t kAlignment = 16;
  if (device_computes_ || operands.empty() || operands.front().scale_is_ready) return operands;
  std::vector<Place> places;
  std::vector<at::Tensor> scales;
  for (const EightBitOperand& operand : operands) {
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
