// QuantizedProducts in 4 bits (NVFP4Quantizer), and what other recipes share with them.
#include <ATen/ops/empty.h>

#include <algorithm>

#include "models/shard/four_bits.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"
#include "models/shard/quantized.h"
#include "models/shard/quantized_memory.h"

namespace models {
namespace {

FourBits rows_of(const Quantized& held) {
  return {rows(held.by_rows), held.scale_of_rows, held.largest_of_rows};
}
FourBits columns_of(const Quantized& held) {
  return {held.by_columns, held.scale_of_columns, held.largest_of_columns};
}

std::vector<at::Tensor> all_of(std::span<Quantized> held, at::Tensor Quantized::*member) {
  std::vector<at::Tensor> tensors;
  for (const Quantized& one : held) {
    if ((one.*member).defined()) tensors.push_back(one.*member);
  }
  return tensors;
}

std::vector<at::Tensor> both_of(std::vector<at::Tensor> left,
                                const std::vector<at::Tensor>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

void note_kernel(const char* name, at::TensorList reads, at::TensorList writes) {
  KernelScope kernel(name);
  kernel.moves(reads, writes);
}

/// The second number of each tensor is a copy of the first.
void copy_largest(std::span<Quantized> held) {
  for (Quantized& one : held) {
    if (!one.largest_of_rows.defined() || !one.largest_of_columns.defined()) continue;
    as_kernel("te::copy_amax", {one.largest_of_rows}, [&] {
      return one.largest_of_columns.copy_(one.largest_of_rows);
    });
  }
}

/// The state of the generator that one kernel rounds with (quantize_impl).
at::Tensor random_state(const at::Tensor& like) {
  return as_kernel(
      "te::philox_unpack", {}, [&] { return at::empty({2}, like.options().dtype(at::kLong)); });
}

/// Whether one kernel transforms and quantizes (is_eligible_for_rht_cast_fusion); its tiles are
/// longer where it has several tensors.
bool fits_tiles(const std::vector<at::Tensor>& tensors) {
  const int64_t tile = tensors.size() > 1 ? 128 : 64;
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    const int64_t k = tensor.size(-1);
    return tensor.numel() / k % tile == 0 && k % 128 == 0;
  });
}

/// A tensor that is transformed and transposed apart.
at::Tensor transformed(const at::Tensor& tensor) {
  const int64_t k = tensor.size(-1);
  return as_kernel("te::hadamard_transform", {tensor}, [&] {
    return at::empty({k, tensor.numel() / k}, tensor.options().requires_grad(false));
  });
}

}  // namespace

/// Of inputs and gradients the largest element after the transform is found, too, by the same
/// kernel (nvte_hadamard_transform_amax).
void QuantizedProducts::find_largest(std::span<Quantized> held,
                                     const std::vector<at::Tensor>& tensors,
                                     QuantizedRole role,
                                     const std::shared_ptr<Communicator>& group) const {
  const bool transforms = role != QuantizedRole::kWeight;
  const std::vector<at::Tensor> largest = both_of(all_of(held, &Quantized::largest_of_rows),
                                                  all_of(held, &Quantized::largest_of_columns));
  note_kernel("te::zero_amax", {}, largest);
  {
    KernelScope kernel(transforms ? "te::hadamard_amax" : "te::amax");
    for (std::size_t i = 0; device_computes_ && i < tensors.size(); ++i) {
      const at::Tensor of_all = tensors[i].detach().abs().amax().to(at::kFloat);
      for (const at::Tensor& number : {held[i].largest_of_rows, held[i].largest_of_columns}) {
        if (number.defined()) number.fill_(of_all);
      }
    }
    kernel.moves(tensors, largest);
  }
  if (!transforms) copy_largest(held);
  if (group) group->all_reduce_max(largest);
}

/// Two kernels, and a transformed copy, where the tiles of one do not fit.
void QuantizedProducts::fill_four_bits(std::span<Quantized> held,
                                       const std::vector<at::Tensor>& tensors,
                                       QuantizedRole role) const {
  const bool in_one = role == QuantizedRole::kWeight || fits_tiles(tensors);
  const bool has_columns = held.front().by_columns.defined();
  std::vector<at::Tensor> states;
  if (role == QuantizedRole::kGradient) {
    for (int kernel = 0; kernel < (in_one || !has_columns ? 1 : 2); ++kernel) {
      states.push_back(random_state(tensors.front()));
    }
  }
  for (std::size_t i = 0; device_computes_ && i < tensors.size(); ++i) {
    const KernelScope unrecorded("te::quantize");
    const at::Tensor values = rows(tensors[i].detach().to(at::kFloat));
    const bool square = role == QuantizedRole::kWeight;
    if (held[i].by_rows.defined()) write_four_bits(rows_of(held[i]), values, square);
    if (has_columns) write_four_bits(columns_of(held[i]), values.t().contiguous(), square);
  }
  const std::vector<at::Tensor> of_rows =
      both_of(all_of(held, &Quantized::by_rows), all_of(held, &Quantized::scale_of_rows));
  const std::vector<at::Tensor> of_columns =
      both_of(all_of(held, &Quantized::by_columns), all_of(held, &Quantized::scale_of_columns));
  if (in_one) return note_kernel("te::quantize", tensors, both_of(of_rows, of_columns));
  if (!of_rows.empty()) note_kernel("te::quantize", tensors, of_rows);
  for (std::size_t i = 0; has_columns && i < tensors.size(); ++i) {
    const at::Tensor turned = transformed(tensors[i]);
    note_kernel("te::quantize", {turned}, {held[i].by_columns, held[i].scale_of_columns});
  }
}

/// _all_gather_nvfp4 and _start_all_gather_fp8_blockwise in transformer_engine/pytorch/
/// distributed.py
void QuantizedProducts::expect_columns(Quantized& whole,
                                       const Quantized& part,
                                       int64_t ranks) const {
  const auto of_all = [ranks](const at::Tensor& own, int64_t columns) {
    return at::empty({own.size(0) * ranks, columns}, own.options());
  };
  if (traits_.fp32_scales && part.by_rows.defined()) {
    const at::Tensor own = part.scale_of_rows.t();
    whole.arrived_scale = of_all(own, own.size(1));
  }
  if (!part.by_columns.defined()) return;
  const int64_t bytes = part.by_columns.size(1);
  if (in_four_bits()) {
    const int64_t blocks = bytes * elements_of_byte() / traits_.block;
    whole.arrived_scale =
        at::empty({part.by_columns.size(0) * ranks, blocks}, part.scale_of_columns.options());
  }
  whole.arrived_columns = of_all(part.by_columns, bytes);
}

/// Each rank's part of a row, of which it has `k`, comes behind those of the ranks before it.
/// `like` may be padded.
at::Tensor QuantizedProducts::joined(const at::Tensor& parts,
                                     const at::Tensor& like,
                                     int64_t k) const {
  return as_kernel("te::swap_first_dims", {parts}, [&] {
    at::Tensor whole = in_four_bits() ? at::empty_like(like) : like;
    if (device_computes_) {
      const at::Tensor rows =
          parts.view(at::kByte).view({parts.size(0) / k, k, -1}).transpose(0, 1);
      const int64_t columns = rows.size(1) * rows.size(2);
      whole.view(at::kByte).narrow(0, 0, k).narrow(1, 0, columns).copy_(rows.reshape({k, columns}));
    }
    return whole;
  });
}

void QuantizedProducts::join_columns(Quantized& held) const {
  const int64_t k = held.by_columns.size(0);
  if (in_four_bits()) {
    held.scale_of_columns = joined(held.arrived_scale, held.scale_of_columns, k);
    held.arrived_scale.reset();
  }
  held.by_columns = joined(held.arrived_columns, held.by_columns, k);
  held.arrived_columns.reset();
}

void QuantizedProducts::join_row_scales(Quantized& held) const {
  if (!held.arrived_scale.defined()) return;
  const at::Tensor whole = held.scale_of_rows.t();
  joined(held.arrived_scale, whole, whole.size(0));
  held.arrived_scale.reset();
}

/// _create_columnwise of Float8BlockwiseQTensorStorage.
void QuantizedProducts::make_columns_of_squares(Quantized& held) const {
  const Quantized columns = QuantizedMemory(traits_, one_copy_)
                                .empty(held.by_rows.sizes(),
                                       held.by_rows.options(),
                                       {.rows = false, .columns = true, .squares = true});
  held.by_columns = columns.by_columns;
  held.scale_of_columns = columns.scale_of_columns;
  if (device_computes_) {
    const KernelScope unrecorded("te::quantize");
    const at::Tensor scales = held.scale_of_rows.t();
    const int64_t rows = held.scale_of_columns.size(0);
    const int64_t blocks = std::min(scales.size(1), held.scale_of_columns.size(1));
    held.by_columns.copy_(held.by_rows.t());
    held.scale_of_columns.fill_(1);
    held.scale_of_columns.narrow(1, 0, blocks)
        .copy_(scales.narrow(0, 0, rows).narrow(1, 0, blocks));
  }
  note_kernel("te::transpose",
              {held.by_rows, held.scale_of_rows},
              {held.by_columns, held.scale_of_columns});
}

/// _nvfp4_2d_multi_tensor_transpose: of a weight, whose columns have the scales of its rows.
void QuantizedProducts::transpose_squares(Quantized& held) const {
  copy_largest({&held, 1});
  if (device_computes_) {
    const KernelScope unrecorded("te::quantize");
    write_transposed(columns_of(held), rows_of(held));
  }
  note_kernel("te::nvfp4_2d_transpose",
              {held.by_rows, held.scale_of_rows},
              {held.by_columns, held.scale_of_columns});
}

at::Tensor QuantizedProducts::values_of(const Quantized& held,
                                        const at::Tensor& part,
                                        c10::ScalarType type) const {
  if (!in_four_bits()) return part.to(type).mul_(held.scale_of_rows);
  const int64_t elements = part.numel() * elements_of_byte();
  at::Tensor values = at::empty({elements}, part.options().dtype(type));
  if (device_computes_) {
    const KernelScope unrecorded("te::dequantize");
    const int64_t begin = element_of(held, part);
    values.copy_(read_four_bits(rows_of(held)).flatten().narrow(0, begin, elements));
  }
  return values;
}

int64_t QuantizedProducts::element_of(const Quantized& held, const at::Tensor& part) const {
  return (part.storage_offset() - held.by_rows.storage_offset()) * elements_of_byte();
}

at::Tensor QuantizedProducts::measure_squares(const Quantized& held,
                                              const at::Tensor& part,
                                              const at::Tensor& values) const {
  const FourBits whole = rows_of(held);
  return largest_of_squares(values.flatten(),
                            element_of(held, part),
                            whole.bytes.size(0),
                            whole.bytes.size(1) * elements_of_byte());
}

void QuantizedProducts::set_squares(const Quantized& held,
                                    const at::Tensor& squares,
                                    const at::Tensor& largest) const {
  if (!device_computes_) return;
  held.largest_of_rows.copy_(largest);
  write_square_scales(rows_of(held), squares.view(squares_of(held)));
}

void QuantizedProducts::write_squares(const Quantized& held,
                                      const at::Tensor& part,
                                      const at::Tensor& values) const {
  if (device_computes_) write_elements(rows_of(held), part, values, element_of(held, part));
}

std::vector<int64_t> QuantizedProducts::squares_of(const Quantized& held) const {
  return {held.by_rows.size(0) / traits_.block,
          held.by_rows.size(1) * elements_of_byte() / traits_.block};
}

at::Tensor QuantizedProducts::scales_without_padding(const Quantized& part) const {
  const int64_t blocks = part.by_columns.size(1) * elements_of_byte() / traits_.block;
  return part.scale_of_columns.narrow(0, 0, part.by_columns.size(0))
      .narrow(1, 0, blocks)
      .contiguous();
}

}  // namespace models
