// How fast a GPU multiplies matrices: published rates (data/matmul.json) and what a shape leaves of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/hardware/hardware.h"

namespace estimator {

/// One matrix product: `batch` of [m, k] x [k, n].
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

/// Shares of the dense peak that products reach on one GPU.
struct MatmulRate {
  double best_share = 1;        ///< of the best shape, for a moment: what tiles and waves divide
  double sustained_share = 1;   ///< when the board's power holds for minutes: no shape is faster
  double accumulate_share = 1;  ///< what adding the product to an fp32 sum leaves
  double start_up_steps = 0;    ///< k steps that filling and draining a tile's pipeline costs
  Source source = Source::kAssumed;
  std::string note;
};

/// Assumed where nothing is published: 0.8 of peak.
MatmulRate matmul_rate(const Gpu& gpu);

/// What the shape leaves of the best share: output tiles that do not fill the last wave of SMs,
/// tiles cut off at the edges, and the start-up of each tile's k loop. In (0, 1].
double matmul_shape_share(const MatmulShape& shape, int64_t multiprocessors, double start_up_steps);

/// Whether cuBLAS runs a batch of products on the units of fp32, because its rows are no multiple
/// of 16 bytes (data/matmul.json).
bool is_off_tensor_cores(const MatmulShape& shape, int64_t element_bytes);

/// Share of the dense peak that a product of 16-bit or wider elements reaches: its shape's, at most
/// the sustained one. Rows that are no multiple of 16 bytes leave a published share of it.
double matmul_share(const MatmulRate& rate,
                    const Gpu& gpu,
                    const MatmulShape& shape,
                    int64_t element_bytes,
                    bool accumulates);

}  // namespace estimator
