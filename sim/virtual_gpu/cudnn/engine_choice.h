#pragma once

#include <cstdint>
#include <vector>

#include "sim/virtual_gpu/cudnn/graph_work.h"

namespace virtual_gpu::cudnn {

/// A way to execute a graph: an engine and what it needs.
struct EngineChoice {
  int64_t engine = 0;
  std::vector<int> numerical_notes;  ///< numbers of cudnnBackendNumericalNote_t
  int64_t workspace_bytes = 0;
};

/// The engines for a graph, best first, when no cuDNN is installed that could be asked. The
/// workspaces of convolutions are assumed:
///   With tensor cores, a tensor whose channels do not lie side by side, or whose number of
///   channels is no multiple of 16 bytes, is copied into that layout. The workspace holds the
///   copies. Single precision without TF32, double precision and convolutions of each channel for
///   itself need none.
/// So cuDNN 9.19 answers for an H100 (by its planning without a device) for the convolutions of
/// ResNet-50 and a UNet, to 147 bytes. Some engines that it chooses need other workspaces:
/// gradients of filters have split sums (up to 6 MB there, more for each channel for itself), and
/// in single precision some convolutions with few channels need less. Other graphs need no
/// workspace: that of attention is allocated by cuDNN's frontend, which is compiled into torch.
std::vector<EngineChoice> assumed_engines(const GraphWork& work);

/// A copy of one of a convolution's tensors into, or out of, the layout of tensor cores.
struct LayoutCopy {
  const char* kernel = "";
  int64_t bytes = 0;  ///< read and written
};

/// The copies of a convolution that runs on tensor cores. Filters of one element without a stride
/// are products of the tensors as they lie, if their images fill vector loads.
std::vector<LayoutCopy> layout_copies(const Convolution& convolution);

}  // namespace virtual_gpu::cudnn
