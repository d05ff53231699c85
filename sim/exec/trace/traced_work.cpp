#include "sim/exec/trace/traced_work.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/virtual_gpu/demangled.h"

namespace sim {

using estimator::BytesSource;
using estimator::ConvolutionPass;
using estimator::TraceWork;
using estimator::WorkKind;

namespace {

/// Numbers of cudaDataType, and c10's names for them.
std::string dtype_name(int cuda_type) {
  constexpr std::pair<int, const char*> kTypes[] = {{0, "Float"},
                                                    {1, "Double"},
                                                    {2, "Half"},
                                                    {3, "Char"},
                                                    {4, "ComplexFloat"},
                                                    {5, "ComplexDouble"},
                                                    {10, "Int"},
                                                    {14, "BFloat16"},
                                                    {28, "Float8_e4m3fn"},
                                                    {29, "Float8_e5m2"},
                                                    {33, "Float4_e2m1fn_x2"}};
  for (const auto& [number, name] : kTypes) {
    if (number == cuda_type) return name;
  }
  return "cudaDataType " + std::to_string(cuda_type);
}

/// A complex product is four real ones.
bool is_complex(int cuda_type) { return dtype_name(cuda_type).starts_with("Complex"); }

const char* direction_name(int cuda_memcpy_kind) {
  constexpr int kToDevice = 1, kToHost = 2;
  if (cuda_memcpy_kind == kToDevice) return estimator::kHostToDevice;
  if (cuda_memcpy_kind == kToHost) return estimator::kDeviceToHost;
  return estimator::kDeviceToDevice;
}

std::optional<ConvolutionPass> pass_of(onerank_virtual_gpu_convolution convolution) {
  switch (convolution) {
    case ONERANK_VIRTUAL_GPU_CONVOLUTION_FORWARD:
      return ConvolutionPass::kForward;
    case ONERANK_VIRTUAL_GPU_CONVOLUTION_BACKWARD_DATA:
      return ConvolutionPass::kBackwardData;
    case ONERANK_VIRTUAL_GPU_CONVOLUTION_BACKWARD_FILTER:
      return ConvolutionPass::kBackwardFilter;
    case ONERANK_VIRTUAL_GPU_NO_CONVOLUTION:
      return std::nullopt;
  }
  return std::nullopt;
}

/// Of queries, keys and values, whichever library multiplies them.
struct AttentionSizes {
  int64_t batch, heads, key_heads;
  int64_t queries, keys;
  int64_t key_width, value_width;
  bool is_backward;
};

std::string attention_name(const std::string& forward, const AttentionSizes& sizes) {
  return sizes.is_backward ? forward + "_backward" : forward;
}

/// Queries, keys and values; in the backward, the gradient of the output before them.
std::vector<std::vector<int64_t>> shapes_of(const AttentionSizes& sizes) {
  const auto shape = [&](int64_t heads, int64_t sequence, int64_t width) {
    return std::vector<int64_t>{sizes.batch, heads, sequence, width};
  };
  std::vector<std::vector<int64_t>> shapes;
  if (sizes.is_backward) shapes = {shape(sizes.heads, sizes.queries, sizes.value_width)};
  shapes.push_back(shape(sizes.heads, sizes.queries, sizes.key_width));
  shapes.push_back(shape(sizes.key_heads, sizes.keys, sizes.key_width));
  shapes.push_back(shape(sizes.key_heads, sizes.keys, sizes.value_width));
  return shapes;
}

/// Of the products of a query with a key, together. Forward: scores and outputs. Backward: the
/// scores again, their gradient, and those of queries, keys and values.
double widths_of_products(const AttentionSizes& sizes) {
  const int64_t key_products = sizes.is_backward ? 3 : 1;
  const int64_t value_products = sizes.is_backward ? 2 : 1;
  return static_cast<double>(key_products * sizes.key_width + value_products * sizes.value_width);
}

}  // namespace

std::string readable_name(const char* mangled) {
  std::string name = virtual_gpu::demangled(mangled);
  constexpr std::string_view kVoid = "void ";
  if (name.starts_with(kVoid)) name.erase(0, kVoid.size());
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    const bool is_anonymous = name.compare(i, 11, "(anonymous ") == 0;
    if (name[i] == '(' && depth == 0 && !is_anonymous) {
      name.resize(i);
      break;
    }
  }
  constexpr std::size_t kLongest = 240;
  if (name.size() > kLongest) name.resize(kLongest);
  return name;
}

TraceWork product_work(const onerank_virtual_gpu_product& product) {
  constexpr int kVectorBytes = 16;
  // cuBLAS is column-major: the product that PyTorch asked for is the transposed one.
  std::vector<std::vector<int64_t>> shapes = {{product.batch, product.n, product.m, product.k}};
  const std::optional<ConvolutionPass> pass = pass_of(product.convolution);
  if (pass) {
    shapes.push_back({product.channels_in,
                      product.channels_out,
                      product.window,
                      product.inputs,
                      product.outputs});
  }
  return {.kind = WorkKind::kProduct,
          .name = pass ? estimator::convolution_name(*pass) : "cublas",
          .dtype = dtype_name(product.type),
          .result_dtype = dtype_name(product.result_type),
          .shapes = std::move(shapes),
          .flops = (is_complex(product.type) ? 8.0 : 2.0) * static_cast<double>(product.batch) *
                   static_cast<double>(product.m) * static_cast<double>(product.n) *
                   static_cast<double>(product.k),
          .bytes = product.bytes,
          .accumulates = product.accumulates != 0,
          .uses_tf32 = product.uses_tf32 != 0,
          .scale_mode = product.scale_mode,
          .is_misaligned = product.alignment != 0 && product.alignment < kVectorBytes,
          .alignment = product.alignment};
}

onerank_virtual_gpu_product told_product(const int64_t* numbers) {
  return {.m = numbers[0],
          .n = numbers[1],
          .k = numbers[2],
          .batch = numbers[3],
          .type = static_cast<int>(numbers[4]),
          .result_type = static_cast<int>(numbers[4]),
          .uses_tf32 = static_cast<int>(numbers[5]),
          .convolution = static_cast<onerank_virtual_gpu_convolution>(numbers[6]),
          .channels_in = numbers[7],
          .channels_out = numbers[8],
          .window = numbers[9],
          .inputs = numbers[10],
          .outputs = numbers[11]};
}

TraceWork attention_work(const onerank_virtual_gpu_event& event,
                         const onerank_virtual_gpu_attention& attention) {
  const AttentionSizes sizes{.batch = attention.batch,
                             .heads = attention.heads,
                             .key_heads = attention.key_heads,
                             .queries = attention.queries,
                             .keys = attention.keys,
                             .key_width = attention.key_width,
                             .value_width = attention.value_width,
                             .is_backward = attention.is_backward != 0};
  const double pairs = static_cast<double>(attention.queries) *
                       static_cast<double>(attention.keys) / (attention.is_causal != 0 ? 2 : 1);
  return {.kind = WorkKind::kKernel,
          .name = event.name,
          .operator_name = attention_name("aten::_scaled_dot_product_cudnn_attention", sizes),
          .dtype = dtype_name(attention.type),
          .shapes = shapes_of(sizes),
          .flops = 2 * static_cast<double>(attention.batch) * static_cast<double>(attention.heads) *
                   pairs * widths_of_products(sizes),
          .bytes = attention.bytes,
          .threads = static_cast<int64_t>(event.threads),
          .bytes_source = BytesSource::kOperator,
          .has_mask = attention.has_mask != 0,
          .has_dropout = attention.has_dropout != 0};
}

FlexAttention flex_attention(const int64_t* numbers) {
  return {.batch = numbers[0],
          .heads = numbers[1],
          .queries = numbers[2],
          .keys = numbers[3],
          .heads_of_a_key = numbers[4],
          .key_width = numbers[5],
          .value_width = numbers[6],
          .block_queries = numbers[7],
          .block_keys = numbers[8],
          .blocks = numbers[9],
          .is_bound = numbers[10] != 0,
          .is_backward = numbers[11] != 0};
}

TraceWork flex_attention_work(const FlexAttention& attention, const std::string& dtype) {
  const AttentionSizes sizes{
      .batch = attention.batch,
      .heads = attention.heads,
      .key_heads = attention.heads / std::max<int64_t>(1, attention.heads_of_a_key),
      .queries = attention.queries,
      .keys = attention.keys,
      .key_width = attention.key_width,
      .value_width = attention.value_width,
      .is_backward = attention.is_backward};
  const double pairs = static_cast<double>(attention.blocks) *
                       static_cast<double>(attention.block_queries * attention.block_keys);
  return {.kind = WorkKind::kKernel,
          .operator_name = attention_name("higher_order::flex_attention", sizes),
          .dtype = dtype,
          .shapes = shapes_of(sizes),
          .flops = 2 * pairs * widths_of_products(sizes),
          .has_unknown_lengths = attention.is_bound,
          .bytes_source = BytesSource::kOperator};
}

TraceWork copy_work(const onerank_virtual_gpu_event& event) {
  if (event.name != nullptr) {
    return {
        .kind = WorkKind::kKernel, .name = event.name, .bytes = static_cast<int64_t>(event.bytes)};
  }
  const bool is_between_ranks = event.is_of_others != 0;
  return {.kind = WorkKind::kCopy,
          .name = is_between_ranks ? estimator::kPeerToPeer : direction_name(event.direction),
          .bytes = static_cast<int64_t>(event.bytes),
          .is_pageable = event.is_pageable != 0};
}

}  // namespace sim
