// How fast convolutions run: cuDNN's, and PyTorch's own of each channel for itself
// (data/convolutions.json). Those with many channels run as the matrix product that they are; what
// differs from it has rates of its own: few channels, channels in groups, each channel for itself,
// and gradients of filters.
#pragma once

#include <cstdint>

#include "estimator/hardware/hardware.h"
#include "estimator/profile/trace.h"

namespace estimator {

/// y = convolution of x, as the forward names them.
struct ConvolutionShape {
  ConvolutionPass pass = ConvolutionPass::kForward;
  bool is_fp32 = false;          ///< else of 16 bits
  bool has_tensor_cores = true;  ///< 16 bits, or fp32 that may be rounded to TF32
  bool is_pytorchs = false;      ///< else cuDNN's
  int64_t groups = 1;
  int64_t in = 1;      ///< channels of x, of a group
  int64_t out = 1;     ///< channels of y, of a group
  int64_t window = 1;  ///< elements of a channel's filter
  double inputs = 0;   ///< elements of x
  double outputs = 0;  ///< elements of y

  double multiply_adds() const;
};

struct ConvolutionRate {
  double multiply_adds_per_second = 0;  ///< 0: as the product
  double slowdown = 1;                  ///< over the product
  double extra_seconds = 0;             ///< beside the product
  double memory_share = 1;              ///< of the memory's rate that the kernel reaches
};

/// On a GPU with other multiprocessors than the measured one's the work takes the longer the fewer
/// these are (assumed).
ConvolutionRate convolution_rate(const ConvolutionShape& shape, const Gpu& gpu);

}  // namespace estimator
