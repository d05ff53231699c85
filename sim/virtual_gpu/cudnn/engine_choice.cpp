#include "sim/virtual_gpu/cudnn/engine_choice.h"

#include <array>

namespace virtual_gpu::cudnn {
namespace {

/// Of the GPU's vector loads.
constexpr int64_t kLoadBytes = 16;
/// What cuDNN 9.19 asks for beside the copies.
constexpr int64_t kHeaderBytes = 131;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// Strides of dims of one element say nothing.
bool is_channels_last(const TensorShape& shape) {
  int64_t stride = 1;
  const auto is_next = [&](std::size_t dim) {
    if (shape.dims[dim] != 1 && shape.strides[dim] != stride) return false;
    stride *= shape.dims[dim];
    return true;
  };
  if (!is_next(1)) return false;
  for (std::size_t dim = shape.dims.size(); dim-- > 2;) {
    if (!is_next(dim)) return false;
  }
  return is_next(0);
}

int64_t padded(int64_t channels, DataType type) {
  return round_up(channels, kLoadBytes / data_type_bytes(type));
}

/// Bytes of the copy that tensor cores can read; 0 if they can read the tensor itself.
int64_t copy_bytes(const TensorShape& shape) {
  const int64_t channels = shape.dims[1];
  const int64_t read = padded(channels, shape.type);
  if (channels == read && is_channels_last(shape)) return 0;
  return shape.bytes() / channels * read;
}

/// A filter has the channels of both sides.
int64_t filter_copy_bytes(const TensorShape& filter) {
  const int64_t out = filter.dims[0];
  const int64_t read = padded(out, filter.type);
  const int64_t bytes = copy_bytes(filter);
  if (out == read) return bytes;
  return (bytes == 0 ? filter.bytes() : bytes) / out * read;
}

struct CopiedTensor {
  const TensorShape& shape;
  int64_t bytes;  ///< of the copy; 0: none
};

std::array<CopiedTensor, 3> copied_tensors(const Convolution& convolution) {
  return {{{convolution.x, copy_bytes(convolution.x)},
           {convolution.w, filter_copy_bytes(convolution.w)},
           {convolution.y, copy_bytes(convolution.y)}}};
}

int64_t workspace_bytes(const Convolution& convolution) {
  int64_t bytes = kHeaderBytes;
  for (const CopiedTensor& copied : copied_tensors(convolution)) bytes += copied.bytes;
  return bytes;
}

bool is_product_as_it_lies(const Convolution& convolution) {
  const TensorShape &x = convolution.x, &w = convolution.w, &y = convolution.y;
  int64_t positions = 1;
  for (std::size_t dim = 2; dim < x.dims.size(); ++dim) {
    if (w.dims[dim] != 1 || x.dims[dim] != y.dims[dim]) return false;
    positions *= x.dims[dim];
  }
  return convolution.groups() == 1 && positions * data_type_bytes(x.type) % kLoadBytes == 0;
}

/// The names that such kernels begin with on a GPU.
const char* layout_kernel(const TensorShape& shape) {
  const bool is_padded = shape.dims[1] != padded(shape.dims[1], shape.type);
  const bool is_wide = data_type_bytes(shape.type) >= 4;
  if (is_channels_last(shape)) return "cudnn::nhwcAddPaddingKernel";
  if (is_padded) return "cudnn::nchwToNhwcKernel<padded>";
  return is_wide ? "cudnn::nchwToNhwcKernel<float>" : "cudnn::nchwToNhwcKernel<half>";
}

/// Each channel for itself: bound by the memory, and computed without tensor cores.
bool is_depthwise(const Convolution& convolution) {
  return convolution.w.dims[1] == 1 && convolution.x.dims[1] > 1;
}

}  // namespace

std::vector<LayoutCopy> layout_copies(const Convolution& convolution) {
  std::vector<LayoutCopy> copies;
  if (is_depthwise(convolution) || is_product_as_it_lies(convolution)) return copies;
  for (const CopiedTensor& copied : copied_tensors(convolution)) {
    if (copied.bytes == 0) continue;
    copies.push_back({layout_kernel(copied.shape), copied.shape.bytes() + copied.bytes});
  }
  return copies;
}

std::vector<EngineChoice> assumed_engines(const GraphWork& work) {
  if (!work.convolution || is_depthwise(*work.convolution)) return {{}};
  const DataType type = work.convolution->x.type;
  EngineChoice with_tensor_cores{.engine = 1,
                                 .numerical_notes = {kNoteTensorCore},
                                 .workspace_bytes = workspace_bytes(*work.convolution)};
  if (type == DataType::kHalf || type == DataType::kBfloat16) return {with_tensor_cores};
  if (type == DataType::kFloat) return {with_tensor_cores, {}};
  return {{}};
}

}  // namespace virtual_gpu::cudnn
