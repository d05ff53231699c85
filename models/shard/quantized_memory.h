// Memory for matrices in 8 or 4 bits, as TransformerEngine's quantizers ask for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/shard/quantized.h"

namespace models {

struct Place {
  std::vector<int64_t> shape;
  int64_t alignment;
};
/// Tensors of bytes in one allocation, one after the other.
std::vector<at::Tensor> in_one_allocation(const std::vector<Place>& places,
                                          int64_t slack,
                                          const at::TensorOptions& options);

/// The dims of a tensor that is transposed in memory, in the order of the memory.
at::Tensor in_memory_order(const at::Tensor& tensor);

class QuantizedMemory {
 public:
  QuantizedMemory(const estimator::QuantizationTraits& traits, bool one_copy)
      : traits_(traits), one_copy_(one_copy) {}

  /// Of a tensor with so many elements in each dim; one scale of a tensor has none yet.
  Quantized empty(at::IntArrayRef shape, const at::TensorOptions& options, QuantizedUse use) const;
  Quantized empty_with_scale(at::IntArrayRef shape,
                             const at::TensorOptions& options,
                             QuantizedUse use) const;
  /// Each part of a matrix by itself; with blocks all in one allocation for each direction.
  std::vector<Quantized> empty_parts(const std::vector<int64_t>& rows_of,
                                     int64_t columns,
                                     const at::TensorOptions& options,
                                     QuantizedUse use) const;

  /// Elements [rows, columns] of what is kept by rows, or by columns.
  std::vector<int64_t> shape_of(const Quantized& held) const;

 private:
  struct Copy {
    at::Tensor matrix, scale, largest;
  };
  using Shape = std::vector<int64_t>;
  bool in_four_bits() const { return traits_.bits == 4; }
  int64_t elements_of_byte() const { return 8 / traits_.bits; }
  Shape row_scales(int64_t rows, int64_t columns, bool squares = false) const;
  Shape column_matrix(int64_t rows, int64_t columns) const;
  Shape column_scales(int64_t rows, int64_t columns, bool squares = false) const;
  Shape fp32_scales(int64_t rows, int64_t columns, bool squares) const;
  at::Tensor row_scale(const at::Tensor& stored, bool squares) const;
  at::Tensor column_scale(const at::Tensor& stored, bool squares) const;
  Quantized blocks(at::IntArrayRef shape, const at::TensorOptions& options, QuantizedUse use) const;
  std::vector<Copy> copies(const std::vector<Shape>& matrices,
                           const std::vector<Shape>& scales,
                           const at::TensorOptions& options) const;

  estimator::QuantizationTraits traits_;
  bool one_copy_;
};

}  // namespace models
