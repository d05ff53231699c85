// The time of kernels that no operator of PyTorch explains: those that torch.compile writes in
// Triton, and cuDNN's copies into other layouts. The names of Triton's tell what they are made
// of ("triton_red_fused_native_layer_norm_0"), and data/compiled_kernels.json how fast an H200 ran
// such kernels. Most are as fast as the memory. Where each element takes much arithmetic (error
// functions, exponentials, random numbers, Welford's algorithm), the multiprocessors bound them,
// and 16-bit elements take as long as those of fp32.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "estimator/hardware/hardware.h"

namespace estimator {

struct CompiledKernelRate {
  double memory_share = 1;         ///< of the rate of streams
  double elements_per_second = 0;  ///< that the multiprocessors work on; 0: no limit is known
};

/// Of a kernel with this name; nothing is known of kernels that a person wrote. On a GPU with
/// other multiprocessors the elements take the longer the fewer these are.
CompiledKernelRate compiled_kernel_rate(std::string_view name, const Gpu& gpu);

/// Seconds for which the kernel keeps the multiprocessors busy, by the elements that it works on:
/// the product of `sizes`, the lengths of its loops that it was told. 0 if nothing is known.
double compiled_kernel_seconds(const CompiledKernelRate& rate, const std::vector<int64_t>& sizes);

}  // namespace estimator
