#include "models/shard/quantized_memory.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "estimator/base/units.h"

namespace models {

using estimator::divide_up;
using estimator::round_up;

std::vector<at::Tensor> in_one_allocation(const std::vector<Place>& places,
                                          int64_t slack,
                                          const at::TensorOptions& options) {
  std::vector<int64_t> offsets;
  offsets.reserve(places.size());
  int64_t bytes = 0;
  for (const Place& place : places) {
    offsets.push_back(round_up(bytes, place.alignment));
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

at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : tensor.t();
}

/// get_scale_shape of Float8BlockQuantizer: blocks before rows, of squares rows before blocks.
QuantizedMemory::Shape QuantizedMemory::fp32_scales(int64_t rows,
                                                    int64_t columns,
                                                    bool squares) const {
  const int64_t blocks = divide_up(columns, traits_.block);
  return squares ? Shape{divide_up(rows, traits_.block), round_up(blocks, 4)}
                 : Shape{blocks, round_up(rows, 4)};
}

/// get_scale_shape of MXFP8Quantizer and NVFP4Quantizer.
QuantizedMemory::Shape QuantizedMemory::row_scales(int64_t rows,
                                                   int64_t columns,
                                                   bool squares) const {
  if (traits_.fp32_scales) return fp32_scales(rows, columns, squares);
  return {round_up(rows, 128), round_up(columns / traits_.block, 4)};
}

/// In memory.
QuantizedMemory::Shape QuantizedMemory::column_matrix(int64_t rows, int64_t columns) const {
  return traits_.transposes ? Shape{columns, rows / elements_of_byte()} : Shape{rows, columns};
}

QuantizedMemory::Shape QuantizedMemory::column_scales(int64_t rows,
                                                      int64_t columns,
                                                      bool squares) const {
  if (traits_.fp32_scales) return fp32_scales(columns, rows, squares);
  const int64_t blocks = round_up(rows / traits_.block, 4), padded = round_up(columns, 128);
  return traits_.transposes ? Shape{padded, blocks} : Shape{blocks, padded};
}

/// As products read them: rows before blocks.
at::Tensor QuantizedMemory::row_scale(const at::Tensor& stored, bool squares) const {
  return traits_.fp32_scales && !squares ? stored.t() : stored;
}
at::Tensor QuantizedMemory::column_scale(const at::Tensor& stored, bool squares) const {
  if (traits_.fp32_scales) return row_scale(stored, squares);
  return traits_.transposes ? stored : stored.t();
}

Quantized QuantizedMemory::blocks(at::IntArrayRef shape,
                                  const at::TensorOptions& options,
                                  QuantizedUse use) const {
  const int64_t k = shape.back(), m = c10::multiply_integers(shape) / k;
  const at::TensorOptions numbers = options.dtype(at::kFloat);
  const at::TensorOptions scales = traits_.fp32_scales ? numbers : options.dtype(at::kByte);
  Quantized held{.scales_are_ready = !use.waits};
  if (use.rows) {
    Shape of_rows = shape.vec();
    of_rows.back() /= elements_of_byte();
    held.by_rows = at::empty(of_rows, options);
    held.scale_of_rows = row_scale(at::empty(row_scales(m, k, use.squares), scales), use.squares);
    if (in_four_bits()) held.largest_of_rows = at::empty({1}, numbers);
  }
  if (use.columns) {
    held.by_columns = at::empty(column_matrix(m, k), options);
    if (!traits_.transposes) held.by_columns = held.by_columns.t();
    held.scale_of_columns =
        column_scale(at::empty(column_scales(m, k, use.squares), scales), use.squares);
    if (in_four_bits()) held.largest_of_columns = at::empty({1}, numbers);
  }
  return held;
}

Quantized QuantizedMemory::empty(at::IntArrayRef shape,
                                 const at::TensorOptions& options,
                                 QuantizedUse use) const {
  if (traits_.block > 0) return blocks(shape, options, use);
  const int64_t k = shape.back(), m = c10::multiply_integers(shape) / k;
  Quantized held;
  if (use.rows || one_copy_) held.by_rows = at::empty(shape, options);
  if (use.columns && !one_copy_) held.by_columns = at::empty({k, m}, options);
  return held;
}

Quantized QuantizedMemory::empty_with_scale(at::IntArrayRef shape,
                                            const at::TensorOptions& options,
                                            QuantizedUse use) const {
  Quantized held = empty(shape, options, use);
  if (traits_.block == 0) {
    held.scale_of_rows = at::empty({1}, options.dtype(at::kFloat));
    held.scale_of_columns = held.scale_of_rows;
  }
  return held;
}

/// The matrices, the scales, and the largest elements (bulk_allocate in
/// pytorch/csrc/extensions/allocate.cpp).
std::vector<QuantizedMemory::Copy> QuantizedMemory::copies(const std::vector<Shape>& matrices,
                                                           const std::vector<Shape>& scales,
                                                           const at::TensorOptions& options) const {
  constexpr int64_t kOfMatrices = 256, kOfScales = 16, kNumber = 4;
  const std::size_t count = matrices.size();
  std::vector<Place> places;
  places.reserve(3 * count);
  for (const Shape& matrix : matrices) places.push_back({matrix, kOfMatrices});
  for (Shape scale : scales) {
    if (traits_.fp32_scales) scale.back() *= kNumber;
    places.push_back({scale, kOfScales});
  }
  if (in_four_bits()) places.insert(places.end(), count, Place{{kNumber}, kOfScales});
  const std::vector<at::Tensor> made = in_one_allocation(places, kOfMatrices, options);
  std::vector<Copy> copies(count);
  for (std::size_t i = 0; i < count; ++i) {
    copies[i].matrix = made[i].view(options.dtype().toScalarType());
    copies[i].scale = traits_.fp32_scales ? made[count + i].view(at::kFloat) : made[count + i];
    if (in_four_bits()) copies[i].largest = made[2 * count + i].view(at::kFloat);
  }
  return copies;
}

std::vector<Quantized> QuantizedMemory::empty_parts(const std::vector<int64_t>& rows_of,
                                                    int64_t columns,
                                                    const at::TensorOptions& options,
                                                    QuantizedUse use) const {
  std::vector<Quantized> parts;
  if (traits_.block == 0) {
    for (const int64_t rows : rows_of) {
      parts.push_back(empty_with_scale({rows, columns}, options, use));
    }
    return parts;
  }
  parts.assign(rows_of.size(), Quantized{.scales_are_ready = !use.waits});
  const auto shapes = [&](auto&& of_rows) {
    std::vector<Shape> all;
    all.reserve(rows_of.size());
    for (const int64_t rows : rows_of) all.push_back(of_rows(rows));
    return all;
  };
  if (use.rows) {
    const std::vector<Copy> made =
        copies(shapes([&](int64_t rows) {
                 return Shape{rows, columns / elements_of_byte()};
               }),
               shapes([&](int64_t rows) { return row_scales(rows, columns); }),
               options);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].by_rows = made[i].matrix;
      parts[i].scale_of_rows = row_scale(made[i].scale, /*squares=*/false);
      parts[i].largest_of_rows = made[i].largest;
    }
  }
  if (use.columns) {
    const std::vector<Copy> made =
        copies(shapes([&](int64_t rows) { return column_matrix(rows, columns); }),
               shapes([&](int64_t rows) { return column_scales(rows, columns); }),
               options);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].by_columns = traits_.transposes ? made[i].matrix : made[i].matrix.t();
      parts[i].scale_of_columns = column_scale(made[i].scale, /*squares=*/false);
      parts[i].largest_of_columns = made[i].largest;
    }
  }
  return parts;
}

std::vector<int64_t> QuantizedMemory::shape_of(const Quantized& held) const {
  if (held.by_rows.defined()) {
    Shape shape = held.by_rows.sizes().vec();
    shape.back() *= elements_of_byte();
    return shape;
  }
  return {held.by_columns.size(1) * elements_of_byte(), held.by_columns.size(0)};
}

}  // namespace models
