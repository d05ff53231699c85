#include "sim/virtual_gpu/cudnn/graph_work.h"

#include <algorithm>
#include <set>

namespace virtual_gpu::cudnn {
namespace {

struct ConvolutionNames {
  Kind kind;
  Pass pass;
  int x, w, y;
};

constexpr ConvolutionNames kConvolutions[] = {
    {Kind::kConvolutionForward, Pass::kForward, kForwardX, kForwardW, kForwardY},
    {Kind::kConvolutionBackwardData,
     Pass::kBackwardData,
     kBackwardDataX,
     kBackwardDataW,
     kBackwardDataY},
    {Kind::kConvolutionBackwardFilter,
     Pass::kBackwardFilter,
     kBackwardFilterX,
     kBackwardFilterW,
     kBackwardFilterY},
};

/// Operations that only move data: fused kernels, bound by the memory.
constexpr Kind kMemoryBound[] = {Kind::kPointwiseOperation,
                                 Kind::kGenStats,
                                 Kind::kBatchNormFinalize,
                                 Kind::kReductionOperation,
                                 Kind::kBatchNormBackwardWeights,
                                 Kind::kNormForward,
                                 Kind::kNormBackward,
                                 Kind::kReshape,
                                 Kind::kRngOperation,
                                 Kind::kExpandBandMatrix,
                                 Kind::kContractBandMatrix};

int64_t product_of_dims(const std::vector<int64_t>& dims, std::size_t first, std::size_t end) {
  int64_t product = 1;
  for (std::size_t i = first; i < end && i < dims.size(); ++i) product *= dims[i];
  return product;
}

std::optional<Convolution> convolution_of(const Node& operation) {
  for (const ConvolutionNames& names : kConvolutions) {
    if (names.kind != operation.kind) continue;
    const NodePtr x = operation.node(names.x);
    const NodePtr w = operation.node(names.w);
    const NodePtr y = operation.node(names.y);
    if (!x || !w || !y) return std::nullopt;
    return Convolution{names.pass, shape_of(*x), shape_of(*w), shape_of(*y)};
  }
  return std::nullopt;
}

/// Operands a [.., m, k], b [.., k, n].
struct Matmul {
  TensorShape a;
  TensorShape b;
};

std::optional<Matmul> matmul_of(const Node& operation) {
  const NodePtr a = operation.node(kMatmulA);
  const NodePtr b = operation.node(kMatmulB);
  if (operation.kind != Kind::kMatmulOperation || !a || !b) return std::nullopt;
  Matmul matmul{shape_of(*a), shape_of(*b)};
  if (matmul.a.dims.size() < 3 || matmul.b.dims.size() < 3) return std::nullopt;
  return matmul;
}

int64_t columns(const TensorShape& matrix) { return matrix.dims.back(); }
int64_t rows(const TensorShape& matrix) { return matrix.dims[matrix.dims.size() - 2]; }

onerank_virtual_gpu_product product_of(const Matmul& matmul) {
  return {.m = columns(matmul.b),
          .n = rows(matmul.a),
          .k = columns(matmul.a),
          .batch = product_of_dims(matmul.a.dims, 0, matmul.a.dims.size() - 2),
          .type = cuda_data_type(matmul.a.type),
          .result_type = cuda_data_type(matmul.a.type)};
}

/// Attention as cuDNN's frontend writes it. Forward: the scores from queries and keys, then the
/// output from weights and values. Backward: the scores again, then the gradient of the values,
/// and three more products.
std::optional<onerank_virtual_gpu_attention> attention_of(const std::vector<Matmul>& matmuls) {
  constexpr std::size_t kForward = 2, kBackward = 5;
  if (matmuls.size() != kForward && matmuls.size() != kBackward) return std::nullopt;
  const TensorShape& queries = matmuls[0].a;
  const TensorShape& keys = matmuls[0].b;  // transposed
  if (queries.dims.size() != 4 || keys.dims.size() != 4) return std::nullopt;
  return onerank_virtual_gpu_attention{.batch = queries.dims[0],
                                       .heads = queries.dims[1],
                                       .key_heads = keys.dims[1],
                                       .queries = rows(queries),
                                       .keys = columns(keys),
                                       .key_width = columns(queries),
                                       .value_width = columns(matmuls[1].b),
                                       .type = cuda_data_type(queries.type),
                                       .is_backward = matmuls.size() == kBackward};
}

/// Attention as a single operation.
std::optional<onerank_virtual_gpu_attention> attention_of(const Node& operation) {
  const bool is_backward = operation.kind == Kind::kAttentionBackward;
  if (operation.kind != Kind::kAttentionForward && !is_backward) return std::nullopt;
  const NodePtr q = operation.node(is_backward ? kAttentionBackwardQ : kAttentionForwardQ);
  const NodePtr k = operation.node(is_backward ? kAttentionBackwardK : kAttentionForwardK);
  const NodePtr v = operation.node(is_backward ? kAttentionBackwardV : kAttentionForwardV);
  if (!q || !k || !v) return std::nullopt;
  const TensorShape queries = shape_of(*q), keys = shape_of(*k), values = shape_of(*v);
  return onerank_virtual_gpu_attention{.batch = queries.dims[0],
                                       .heads = queries.dims[1],
                                       .key_heads = keys.dims[1],
                                       .queries = rows(queries),
                                       .keys = rows(keys),
                                       .key_width = columns(queries),
                                       .value_width = columns(values),
                                       .type = cuda_data_type(queries.type),
                                       .is_backward = is_backward};
}

bool is_pointwise(const Node& operation, int mode) {
  if (operation.kind != Kind::kPointwiseOperation) return false;
  const NodePtr pointwise = operation.node(kPointwiseDescriptor);
  return pointwise && pointwise->number(kPointwiseMode) == mode;
}

bool is_in_memory(const Node& node) {
  return node.kind == Kind::kTensor && node.number(kTensorIsVirtual) == 0 &&
         node.number(kTensorIsByValue) == 0;
}

/// A tensor in memory with a number for each key; the logarithms of the sums have one for a query.
bool has_number_for_each_key(const Node& operation) {
  return std::any_of(
      operation.attributes.begin(), operation.attributes.end(), [](const Attribute& attribute) {
        return std::any_of(attribute.nodes.begin(), attribute.nodes.end(), [](const NodePtr& node) {
          return is_in_memory(*node) && shape_of(*node).dims.back() > 1;
        });
      });
}

/// What an operation beside the products says of an attention.
void describe(const Node& operation, onerank_virtual_gpu_attention& attention) {
  // Only masks of a diagonal compare in this way: those of padding ask for less.
  if (is_pointwise(operation, kPointwiseCompareGreaterOrEqual)) attention.is_causal = 1;
  if (is_pointwise(operation, kPointwiseAdd) && has_number_for_each_key(operation)) {
    attention.has_mask = 1;
  }
  if (operation.kind == Kind::kRngOperation) attention.has_dropout = 1;
}

void count_bytes(const Node& operation, std::set<const Node*>& counted, GraphWork& work) {
  for (const Attribute& attribute : operation.attributes) {
    for (const NodePtr& node : attribute.nodes) {
      if (!is_in_memory(*node) || !counted.insert(node.get()).second) continue;
      const TensorShape shape = shape_of(*node);
      work.bytes += shape.bytes();
      work.largest_tensor = std::max(work.largest_tensor, shape.elements());
    }
  }
}

bool only_moves_data(Kind kind) {
  return std::find(std::begin(kMemoryBound), std::end(kMemoryBound), kind) !=
         std::end(kMemoryBound);
}

}  // namespace

int cuda_data_type(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return 0;
    case DataType::kDouble:
      return 1;
    case DataType::kHalf:
      return 2;
    case DataType::kInt32:
      return 10;
    case DataType::kBfloat16:
      return 14;
    case DataType::kFp8E4m3:
      return 28;
    case DataType::kFp8E5m2:
      return 29;
    default:
      return 3;
  }
}

onerank_virtual_gpu_product product_of(const Convolution& convolution) {
  const TensorShape &x = convolution.x, &w = convolution.w, &y = convolution.y;
  const int64_t groups = convolution.groups();
  const int64_t window = product_of_dims(w.dims, 2, w.dims.size());
  const int64_t positions = y.dims[0] * product_of_dims(y.dims, 2, y.dims.size());
  const int64_t in = w.dims[1], out = w.dims[0] / groups;
  onerank_virtual_gpu_product product{.n = positions,
                                      .batch = groups,
                                      .type = cuda_data_type(x.type),
                                      .result_type = cuda_data_type(x.type),
                                      .bytes = x.bytes() + w.bytes() + y.bytes(),
                                      .channels_in = in,
                                      .channels_out = out,
                                      .window = window,
                                      .inputs = x.elements(),
                                      .outputs = y.elements()};
  switch (convolution.pass) {
    case Pass::kForward:
      product.convolution = ONERANK_VIRTUAL_GPU_CONVOLUTION_FORWARD;
      product.m = out;
      product.k = in * window;
      break;
    case Pass::kBackwardData:
      product.convolution = ONERANK_VIRTUAL_GPU_CONVOLUTION_BACKWARD_DATA;
      product.m = in;
      product.k = out * window;
      break;
    case Pass::kBackwardFilter:
      product.convolution = ONERANK_VIRTUAL_GPU_CONVOLUTION_BACKWARD_FILTER;
      product.m = in * window;
      product.n = out;
      product.k = positions;
      break;
  }
  return product;
}

std::optional<GraphWork> work_of(const Node& graph, int& unknown) {
  GraphWork work;
  std::vector<Matmul> matmuls;
  std::set<const Node*> counted;
  const Attribute* operations = graph.find(kGraphOperations);
  if (operations == nullptr) return work;
  for (const NodePtr& operation : operations->nodes) {
    count_bytes(*operation, counted, work);
    if (const auto convolution = convolution_of(*operation)) {
      work.convolution = convolution;
    } else if (const auto matmul = matmul_of(*operation)) {
      matmuls.push_back(*matmul);
    } else if (const auto attention = attention_of(*operation)) {
      work.attention = attention;
    } else if (!only_moves_data(operation->kind)) {
      unknown = static_cast<int>(operation->kind);
      return std::nullopt;
    }
  }
  if (!work.attention) work.attention = attention_of(matmuls);
  if (work.attention) {
    for (const NodePtr& operation : operations->nodes) describe(*operation, *work.attention);
    work.attention->bytes = work.bytes;
  } else {
    for (const Matmul& matmul : matmuls) work.products.push_back(product_of(matmul));
  }
  return work;
}

}  // namespace virtual_gpu::cudnn
