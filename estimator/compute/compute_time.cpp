#include "estimator/compute/compute_time.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "estimator/compute/gpu_variation.h"
#include "estimator/profile/product_operators.h"

namespace estimator {
namespace {

bool name_contains(const OperatorRecord& record, std::string_view part) {
  return record.name.find(part) != std::string::npos;
}

constexpr MatmulShape kUsualProduct{.m = 8192, .n = 8192, .k = 8192};

/// A fused weight gradient adds 16-bit products to an fp32 sum, which is its first input.
bool adds_to_fp32_sum(const OperatorRecord& record) {
  return record.dtype == "Float" && record.shapes.size() == 3 && name_contains(record, "addmm") &&
         record.shapes[0].size() == 2;
}

/// The type whose rate a matrix product runs at. Types other than 16-bit ones run on the fp32
/// units.
Dtype matrix_dtype(const OperatorRecord& record, Dtype plan_dtype) {
  if (record.dtype == "BFloat16") return Dtype::kBf16;
  if (record.dtype == "Half") return Dtype::kFp16;
  return adds_to_fp32_sum(record) ? plan_dtype : Dtype::kFp32;
}

bool rounds_to_tf32(const OperatorRecord& record, const Gpu& gpu) {
  return record.name == kEngineProduct && record.dtype == "Float" && gpu.peak_flops_per_second.tf32;
}

bool is_empty(const std::vector<int64_t>& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

/// Empty when the shapes are not those of a product of two matrices that have elements.
std::optional<MatmulShape> matmul_shape(const OperatorRecord& record) {
  const auto& shapes = record.shapes;
  if (shapes.size() < 2) return {};
  const auto& left = shapes[shapes.size() - 2];
  const auto& right = shapes.back();
  if (left.size() < 2 || right.size() < 2 || is_empty(left) || is_empty(right)) return {};
  MatmulShape shape{.m = left[left.size() - 2],
                    .n = right.back(),
                    .k = left.back(),
                    .is_misaligned = record.is_misaligned};
  for (std::size_t i = 0; i + 2 < left.size(); ++i) shape.batch *= left[i];
  return shape;
}

/// A causal mask leaves half of the FLOPs of every query with every key.
bool is_masked(double flops, const AttentionShape& shape, int64_t keys) {
  const bool is_forward = shape.pass == AttentionPass::kForward;
  const int64_t widths = is_forward ? shape.head_width + shape.value_width
                                    : 3 * shape.head_width + 2 * shape.value_width;
  const double all = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                     static_cast<double>(shape.sequence) * static_cast<double>(keys) *
                     static_cast<double>(widths);
  constexpr double kBetweenHalfAndAll = 0.75;
  return flops < kBetweenHalfAndAll * all;
}

/// The first input, the query or the gradient of the output, is [batch, heads, sequence, width] for
/// `_scaled_dot_product_*` and flex_attention, else [batch, sequence, heads, width]. Other shapes:
/// a usual call. After the gradient come query, key and value.
AttentionShape attention_shape(const OperatorRecord& record) {
  AttentionShape shape{.pass = name_contains(record, "backward") ? AttentionPass::kBackward
                                                                 : AttentionPass::kForward,
                       .batch = 1,
                       .heads = 64,
                       .sequence = 4096,
                       .head_width = 128,
                       .is_fp32 = record.dtype == "Float",
                       .is_quantized = is_scaled_type(record.dtype),
                       .operator_name = record.name};
  if (record.shapes.empty() || record.shapes[0].size() != 4 || is_empty(record.shapes[0])) {
    return shape;
  }
  const auto& query = record.shapes[0];
  const bool heads_first = find_product(record.name)->heads_before_sequence;
  shape.batch = query[0];
  shape.heads = query[heads_first ? 1 : 2];
  shape.sequence = query[heads_first ? 2 : 1];
  shape.head_width = query[3];
  const std::size_t first = shape.pass == AttentionPass::kBackward ? 1 : 0;
  if (record.shapes.size() < first + 3) return shape;
  for (const std::size_t key_or_value : {first, first + 2}) {
    const auto& other = record.shapes[key_or_value];
    if (other.size() != 4 || is_empty(other)) return shape;
  }
  shape.head_width = record.shapes[first][3];
  shape.value_width = record.shapes[first + 2][3];
  shape.masked = is_masked(record.flops, shape, record.shapes[first + 1][heads_first ? 2 : 1]);
  return shape;
}

double flops_per_second(const OperatorRecord& record, const GpuRates& rates, Dtype plan_dtype) {
  if (is_attention(record)) return rates.attention_flops_per_second(attention_shape(record));
  if (!is_matmul(record)) return rates.gpu().peak_flops(Dtype::kFp32);
  if (is_scaled_type(record.dtype)) {
    const ScaledProduct product = scaled_product(record);
    return rates.scaled_flops_per_second(product.shape, product.scaling);
  }
  const MatmulShape shape = matmul_shape(record).value_or(kUsualProduct);
  if (rounds_to_tf32(record, rates.gpu())) {
    return rates.flops_per_second_as_bf16(rates.gpu().peak_flops_per_second.tf32, shape);
  }
  return rates.matmul_flops_per_second(
      shape, matrix_dtype(record, plan_dtype), adds_to_fp32_sum(record));
}

/// `scales`: the shape of those of a matrix whose rows have `k` elements. Shapes are padded.
ProductScaling scaling_of(const std::vector<int64_t>& scales, int64_t k) {
  constexpr int64_t kMicroBlock = 32;
  if (scales == std::vector<int64_t>{1}) return ProductScaling::kTensor;
  if (scales.size() != 2 || scales[1] == 1) return ProductScaling::kRow;
  return scales[1] * kMicroBlock >= k ? ProductScaling::kMicro : ProductScaling::kBlock;
}

}  // namespace

ScaledProduct scaled_product(const OperatorRecord& record) {
  const auto& shapes = record.shapes;
  ScaledProduct product{.shape = kUsualProduct, .scaling = ProductScaling::kRow};
  if (shapes.size() < 2 || shapes[0].size() != 2 || shapes[1].size() != 2) return product;
  product.shape = {.m = shapes[0][0],
                   .n = shapes[1][1],
                   .k = shapes[0][1],
                   .is_misaligned = record.is_misaligned};
  if (record.dtype.starts_with("Float4")) {
    product.shape.k *= 2;
    product.scaling = ProductScaling::kNvfp4;
  } else if (shapes.size() > 2) {
    product.scaling = scaling_of(shapes[2], product.shape.k);
  }
  return product;
}

double product_speed(const OperatorRecord& record, const GpuRates& rates) {
  if (!is_matmul(record)) return 1;
  if (is_scaled_type(record.dtype)) {
    const ScaledProduct product = scaled_product(record);
    return rates.product_speed(product.shape, product.scaling);
  }
  return rates.product_speed(matmul_shape(record).value_or(kUsualProduct), std::nullopt);
}

std::string operand_dtype(const OperatorRecord& record, Dtype plan_dtype) {
  if (record.name == kEngineProduct && record.dtype == "Float") return "TF32";
  if (!adds_to_fp32_sum(record) || plan_dtype == Dtype::kFp32) return record.dtype;
  return plan_dtype == Dtype::kBf16 ? "BFloat16" : "Half";
}

bool is_matmul(const OperatorRecord& record) { return is_matrix_product(record.name); }

bool is_attention(const OperatorRecord& record) { return is_attention(record.name); }

bool is_fused_adam(const OperatorRecord& record) { return name_contains(record, "_fused_adam"); }

ComputeTarget compute_target(const Plan& plan, const Gpu& gpu, const Calibration* calibration) {
  return {.gpu = gpu,
          .dtype = plan.training.dtype,
          .framework = plan.training.framework,
          .attention = {.attention = plan.training.attention,
                        .deterministic = plan.training.deterministic_mode,
                        .dropout = plan.model.attention_dropout > 0,
                        .key_width = plan.model.key_width(),
                        .value_width = plan.model.value_width()},
          .experts = plan.model.has_experts() ? plan.experts_of_rank() : 1,
          .calibration = calibration,
          .slowdown = slowest_gpu_slowdown(plan)};
}

OperatorPrice operator_price(const OperatorRecord& record,
                             const GpuRates& rates,
                             Dtype plan_dtype,
                             double memory_share) {
  OperatorPrice price;
  if (record.flops > 0) {
    price.seconds = record.flops / flops_per_second(record, rates, plan_dtype) * rates.slowdown();
    price.bound = Bound::kCompute;
  }
  if (record.bytes > 0) {
    const double seconds = record.bytes /
                           rates.memory_bytes_per_second(record.bytes, is_fused_adam(record)) /
                           memory_share;
    if (seconds > price.seconds) price.bound = Bound::kMemory;
    price.seconds = std::max(price.seconds, seconds);
  }
  const LaunchCost& launch = rates.launch();
  if (price.seconds < launch.kernel_seconds) price.bound = Bound::kLaunch;
  price.seconds += launch.kernel_seconds;
  return price;
}

double operator_seconds(const OperatorRecord& record, const ComputeTarget& target) {
  return operator_price(record, target.rates(), target.dtype).seconds;
}

}  // namespace estimator
