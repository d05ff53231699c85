// How fast a GPU multiplies matrices: published rates (data/matmul.json), and the share of them
// that a shape reaches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/base/tagged.h"
#include "estimator/hardware/hardware.h"

namespace estimator {

/// A batch of matrix products: `batch` times [m, k] x [k, n].
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  /// A row of one of the three matrices in memory, the distance of two rows, or an address is no
  /// multiple of 16 bytes: one load or store of a thread. Tensor cores run at full rate only if all
  /// are (cuBLAS documentation, "Tensor Core Usage"). Which dims are rows depends on what is
  /// transposed: the tokens of a linear layer never are.
  bool is_misaligned = false;
  bool is_in_pairs = false;  ///< a misaligned one: they are multiples of 4 bytes

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

/// Shares of the dense peak that matrix products reach on one GPU.
struct MatmulRate {
  double best_share = 1;  ///< of the best shape for a short time; the shape's share multiplies it
  double sustained_share = 1;    ///< limit for all shapes, by the board's power over minutes
  double accumulate_share = 1;   ///< factor when the product is added to an fp32 sum
  double start_up_steps = 0;     ///< cost of filling and draining a tile's pipeline, in k steps
  bool shares_out_k = false;     ///< where tiles are few, several sum parts of k (split-K)
  bool has_small_tiles = false;  ///< those of kernels without tensor cores
  Source source = Source::kAssumed;
  std::string note;
};

/// What has a scale of its own in the operands of a product in 8 bits; or that they have 4.
enum class ProductScaling {
  kTensor,  ///< a whole tensor
  kRow,     ///< a row of the first operand, and a column of the second
  kBlock,   ///< 128 elements of a row, or a block of 128 x 128
  kMicro,   ///< 32 elements of a row (MX)
  kNvfp4,   ///< in 4 bits: 16 elements of a row
};
constexpr std::array<EnumName<ProductScaling>, 5> enum_names(ProductScaling) {
  return {{{ProductScaling::kTensor, "tensor"},
           {ProductScaling::kRow, "row"},
           {ProductScaling::kBlock, "block"},
           {ProductScaling::kMicro, "micro"},
           {ProductScaling::kNvfp4, "nvfp4"}}};
}

/// Whether PyTorch's name of a type is that of elements of 8 or 4 bits that have scales.
inline bool is_scaled_type(std::string_view dtype) {
  return dtype.starts_with("Float8") || dtype.starts_with("Float4");
}

/// The GPU's peak for such products; empty if it has none.
const std::optional<double>& scaled_peak(const Gpu& gpu, ProductScaling scaling);

/// The rate of a GPU; if nothing is published for it, 0.8 of peak is assumed.
MatmulRate matmul_rate(const Gpu& gpu);

/// The rate of kernels without tensor cores, on the units of fp32 or FP64: smaller tiles, and loops
/// that start at once.
MatmulRate single_element_rate(const Gpu& gpu);

/// The factor on products of INT8, of those that have the rate of 16-bit products.
double int8_share(const Gpu& gpu);

/// The rate of such products, as shares of that peak; empty if nothing is published.
std::optional<MatmulRate> scaled_rate(const Gpu& gpu, ProductScaling scaling);

/// The factor of a shape, in (0, 1], on the best share. It is below 1 because output tiles may not
/// fill the last wave of SMs, tiles are cut off at the edges, and each tile's k loop needs a start.
/// Where k is shared out, each part is longer than its start.
double matmul_shape_share(const MatmulShape& shape,
                          int64_t multiprocessors,
                          double start_up_steps,
                          bool shares_out_k = false,
                          bool has_small_tiles = false);

/// Whether a product has a vector on one side, or is an outer product of two. cuBLAS runs these on
/// the fp32 units (its gemv kernels), where they wait for memory: they fill no tile.
bool is_of_vectors(const MatmulShape& shape);

/// Share of the dense peak that a product reaches: the best share times the factor of the shape, at
/// most the sustained share. A published factor lowers that of a misaligned one further.
double matmul_share(const MatmulRate& rate,
                    const Gpu& gpu,
                    const MatmulShape& shape,
                    bool accumulates);

}  // namespace estimator
