#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/virtual_gpu/control.h"
#include "sim/virtual_gpu/cudnn/descriptor.h"

/// What a graph of operations computes: the work that its execution puts on the GPU.
namespace virtual_gpu::cudnn {

enum class Pass { kForward, kBackwardData, kBackwardFilter };

/// A convolution: x [n, c, ...], w [k, c / groups, ...], y [n, k, ...].
struct Convolution {
  Pass pass = Pass::kForward;
  TensorShape x;
  TensorShape w;
  TensorShape y;

  int64_t groups() const { return x.dims[1] / w.dims[1]; }
};

struct GraphWork {
  std::optional<Convolution> convolution;
  std::vector<onerank_virtual_gpu_product> products;  ///< of matrices, in cuBLAS's convention
  std::optional<onerank_virtual_gpu_attention> attention;
  /// Of the tensors that the graph reads and writes.
  int64_t bytes = 0;
  int64_t largest_tensor = 0;  ///< elements of the largest of them
};

/// The work of a graph's operations. If there is an operation whose work is not known, its kind is
/// written to `unknown`, and nothing is returned.
std::optional<GraphWork> work_of(const Node& graph, int& unknown);

/// The product as which a convolution is computed: a row for each output position, a column for
/// each channel, and its FLOPs. It moves the bytes of the three tensors.
onerank_virtual_gpu_product product_of(const Convolution& convolution);

/// The number of a cudaDataType.
int cuda_data_type(DataType type);

}  // namespace virtual_gpu::cudnn
