// How much of a GPU's peak its kernels reach: published measurements (data/efficiency.json) and the
// shape of the curves between them. A GPU without a measurement gets an assumed share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/hardware.h"
#include "estimator/plan.h"

namespace estimator {

/// A share of peak, 0 to 1, and whether it was measured on this GPU.
struct Share {
  double of_peak = 1;
  bool assumed = false;
};

/// Large matrix products over the dense tensor-core peak. Assumed where unknown: 0.8.
Share matmul_share(const Gpu& gpu);

/// Large streams over the memory's peak bandwidth. Assumed where unknown: 0.85.
Share memory_share(const Gpu& gpu);

enum class AttentionPass { kForward, kBackward };

/// Causal flash attention over the dense 16-bit peak, by head width (the nearest measured) and
/// sequence (between measured ones). `dialect` picks the kernel: on Hopper, megatron-lm runs cuDNN
/// or FlashAttention-3, plain runs torch's FlashAttention-2. Assumed where unknown: A100's share.
Share attention_share(
    const Gpu& gpu, Dialect dialect, AttentionPass pass, int64_t head_width, int64_t sequence);

/// One matrix product: `batch` of [m, k] x [k, n].
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

/// What the shape leaves of matmul_share: output tiles that do not fill the last wave of SMs, tiles
/// cut off at the edges, and the start-up of each tile's k loop. In (0, 1].
double matmul_shape_share(const MatmulShape& shape, int64_t multiprocessors);

/// What the size leaves of memory_share: Calculon's ladder (network.py and systems @caa4b11: 0.9
/// from 100 MB, 0.75 from 10, 0.6 from 1, 0.3 below), relative to its top, and joined by lines so
/// that more bytes never take less time.
double memory_size_share(double bytes);

}  // namespace estimator
