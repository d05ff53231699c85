#include "estimator/compute_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "estimator/efficiency.h"

namespace estimator {
namespace {

bool name_contains(const OperatorRecord& record, std::string_view part) {
  return record.name.find(part) != std::string::npos;
}

/// The type whose rate a matrix product runs at. Types other than 16-bit ones run on the fp32
/// units.
Dtype matrix_dtype(const OperatorRecord& record, const ComputeTarget& target) {
  if (record.dtype == "BFloat16") return Dtype::kBf16;
  if (record.dtype == "Half") return Dtype::kFp16;
  // A fused weight gradient adds 16-bit products to an fp32 sum, which is its first input.
  const bool adds_to_sum = name_contains(record, "addmm") || name_contains(record, "baddbmm");
  return adds_to_sum ? target.dtype : Dtype::kFp32;
}

bool is_matmul(const OperatorRecord& record) {
  constexpr std::array<std::string_view, 9> kProducts = {"aten::mm",
                                                         "aten::addmm",
                                                         "aten::addmm_",
                                                         "aten::_addmm_activation",
                                                         "aten::bmm",
                                                         "aten::baddbmm",
                                                         "aten::baddbmm_",
                                                         "aten::linear",
                                                         "aten::matmul"};
  return std::find(kProducts.begin(), kProducts.end(), record.name) != kProducts.end();
}

/// Empty when the shapes are not those of a product of two matrices.
std::optional<MatmulShape> matmul_shape(const OperatorRecord& record) {
  const auto& shapes = record.shapes;
  if (shapes.size() < 2) return {};
  const bool linear = record.name == "aten::linear";  // input [.., k], weight [n, k], bias
  const auto& left = linear ? shapes[0] : shapes[shapes.size() - 2];
  const auto& right = linear ? shapes[1] : shapes.back();
  if (left.size() < 2 || right.size() < 2) return {};
  MatmulShape shape{
      .m = left[left.size() - 2], .n = linear ? right[0] : right.back(), .k = left.back()};
  for (std::size_t i = 0; i + 2 < left.size(); ++i) (linear ? shape.m : shape.batch) *= left[i];
  return shape;
}

bool is_attention(const OperatorRecord& record) {
  return name_contains(record, "flash_attention") || name_contains(record, "efficient_attention") ||
         name_contains(record, "cudnn_attention");
}

/// FLOP per second of a fused attention. Its first input, the query or the gradient of the output,
/// is [batch, heads, sequence, width] for `_scaled_dot_product_*`, else [batch, sequence, heads,
/// width].
double attention_rate(const OperatorRecord& record, const ComputeTarget& target) {
  const double peak = target.gpu.peak_flops(matrix_dtype(record, target));
  if (record.shapes.empty() || record.shapes[0].size() != 4) {
    return peak * matmul_share(target.gpu).of_peak;
  }
  const auto& query = record.shapes[0];
  const int64_t sequence = name_contains(record, "scaled_dot_product") ? query[2] : query[1];
  const auto pass =
      name_contains(record, "backward") ? AttentionPass::kBackward : AttentionPass::kForward;
  return peak * attention_share(target.gpu, target.dialect, pass, query[3], sequence).of_peak;
}

double flops_per_second(const OperatorRecord& record, const ComputeTarget& target) {
  if (is_attention(record)) return attention_rate(record, target);
  if (!is_matmul(record)) return target.gpu.peak_flops(Dtype::kFp32);
  const double peak = target.gpu.peak_flops(matrix_dtype(record, target));
  const std::optional<MatmulShape> shape = matmul_shape(record);
  const double shape_share = shape ? matmul_shape_share(*shape, target.gpu.multiprocessors) : 1.0;
  return peak * matmul_share(target.gpu).of_peak * shape_share;
}

}  // namespace

double operator_seconds(const OperatorRecord& record, const ComputeTarget& target) {
  double seconds = 0;
  if (record.flops > 0) seconds = record.flops / flops_per_second(record, target);
  if (record.bytes > 0) {
    const double bandwidth = target.gpu.memory_bandwidth_bytes_per_second *
                             memory_share(target.gpu).of_peak * memory_size_share(record.bytes);
    seconds = std::max(seconds, record.bytes / bandwidth);
  }
  return seconds + kLaunchSeconds;
}

std::vector<std::string> assumed_efficiencies(const ComputeTarget& target) {
  std::vector<std::string> notes;
  const auto note = [&](const Share& share, std::string_view what) {
    if (!share.assumed) return;
    notes.push_back(
        fmt::format("{} reach {:.0f} % of peak on {}: assumed, not measured on this GPU",
                    what,
                    100 * share.of_peak,
                    target.gpu.id));
  };
  note(matmul_share(target.gpu), "large matrix products");
  note(memory_share(target.gpu), "large streams from memory");
  constexpr int64_t kUsualWidth = 128, kUsualSequence = 8192;
  note(attention_share(
           target.gpu, target.dialect, AttentionPass::kForward, kUsualWidth, kUsualSequence),
       "flash attention kernels");
  notes.push_back(fmt::format("each kernel costs {:.0f} us of launch", kLaunchSeconds * 1e6));
  return notes;
}

}  // namespace estimator
