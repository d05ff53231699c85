#include "sim/virtual_gpu/cudnn/engine_choice.h"

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

int64_t workspace_bytes(const Convolution& convolution) {
  return kHeaderBytes + copy_bytes(convolution.x) + filter_copy_bytes(convolution.w) +
         copy_bytes(convolution.y);
}

/// Each channel for itself: bound by the memory, and computed without tensor cores.
bool is_depthwise(const Convolution& convolution) {
  return convolution.w.dims[1] == 1 && convolution.x.dims[1] > 1;
}

}  // namespace

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
