#include "estimator/compute/attention_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/interpolate.h"
#include "estimator/compute/attention_extras.h"
#include "estimator/compute/deterministic_attention.h"
#include "estimator/compute/flex_attention.h"

namespace onerank_data {
extern const std::string_view attention_json;
}

namespace estimator {
namespace {

const std::vector<AttentionCurve>& attention_curves() {
  static const auto rows =
      read_database<AttentionCurve>(onerank_data::attention_json, "attention.json");
  return rows;
}

struct Widths {
  int64_t key = 0, value = 0;
};
Widths widths_of(const AttentionShape& shape) {
  return {shape.head_width, shape.value_width > 0 ? shape.value_width : shape.head_width};
}
Widths widths_of(const AttentionCurve& curve) {
  return {curve.head_width, curve.value_width.value_or(curve.head_width)};
}
int64_t distance(const Widths& left, const Widths& right) {
  return std::abs(left.key - right.key) + std::abs(left.value - right.value);
}

/// Heads of one width are never priced by a curve of two.
bool is_for(const AttentionCurve& curve, const Widths& own) {
  const Widths measured = widths_of(curve);
  return own.key != own.value || measured.key == measured.value;
}

/// What a curve must be of. An operator's own curves are for calls of it alone.
struct Wanted {
  Attention attention;
  std::string_view operator_name;  ///< "": the word decides

  bool holds(const AttentionCurve& row) const {
    if (operator_name.empty()) {
      return row.operators.empty() && row.attention.value_or(attention) == attention;
    }
    return std::any_of(row.operators.begin(), row.operators.end(), [&](const std::string& name) {
      return operator_name.starts_with(name);
    });
  }
};

const AttentionCurve* find_curve(const std::string& gpu_id,
                                 const AttentionShape& shape,
                                 const Wanted& wanted,
                                 bool masked) {
  const AttentionCurve* nearest = nullptr;
  for (const AttentionCurve& row : attention_curves()) {
    if (!contains(row.gpus, gpu_id) || !contains(row.passes, shape.pass) || row.masked != masked ||
        row.scaling.has_value() != shape.is_quantized || !wanted.holds(row) ||
        !is_for(row, widths_of(shape))) {
      continue;
    }
    const auto off = [&](const AttentionCurve& c) {
      return distance(widths_of(c), widths_of(shape));
    };
    if (nearest == nullptr || off(row) < off(*nearest)) nearest = &row;
  }
  return nearest;
}

/// The curve for `gpu_id` whose head widths are nearest, or null.
const AttentionCurve* find_curve(const std::string& gpu_id,
                                 const AttentionShape& shape,
                                 const AttentionKernel& kernel) {
  const bool masked = shape.masked || !kernel.by_call;
  const auto with_mask_or_without = [&](const Wanted& wanted) {
    const AttentionCurve* own = find_curve(gpu_id, shape, wanted, masked);
    return own != nullptr || masked ? own : find_curve(gpu_id, shape, wanted, true);
  };
  if (!kernel.by_call || shape.operator_name.empty()) {
    return with_mask_or_without({kernel.attention, ""});
  }
  const AttentionCurve* own = with_mask_or_without({kernel.attention, shape.operator_name});
  const bool is_cudnn = shape.operator_name.find("cudnn") != std::string::npos;
  return own != nullptr
             ? own
             : with_mask_or_without({is_cudnn ? Attention::kFused : kernel.attention, ""});
}

/// Share of the rate that a call with few heads reaches. A block does 256 rows of one head, and
/// under a causal mask half of the keys on average.
double occupancy(const AttentionCurve& curve,
                 const AttentionShape& shape,
                 int64_t multiprocessors) {
  constexpr int64_t kBlockRows = 256;
  const int64_t blocks =
      shape.batch * shape.heads * ((shape.sequence + kBlockRows - 1) / kBlockRows);
  const double part_of_keys = curve.masked ? 0.5 : 1;
  const double waves =
      part_of_keys * static_cast<double>(blocks) / static_cast<double>(multiprocessors);
  return waves / (waves + curve.half_occupied_at_waves);
}

double share_on_curve(const AttentionCurve& curve, const AttentionShape& shape) {
  const auto sequence = static_cast<double>(shape.sequence);
  return interpolate_log(curve.sequence, curve.teraflops, sequence) * 1e12 /
         measured_gpu(curve.measured_on).peak_flops(Dtype::kFp16);
}

/// PyTorch's aten/src/ATen/native/transformers/cuda/mem_eff_attention/gemm_kernel_utils.h takes
/// CUTLASS's OpMultiplyAddFastF32 from Ampere on.
double fp32_over_fp16(const Gpu& gpu) {
  constexpr double kProductsOfTf32 = 3;
  const std::optional<double>& tf32 = gpu.peak_flops_per_second.tf32;
  const double own = tf32 ? *tf32 / kProductsOfTf32 : gpu.peak_flops(Dtype::kFp32);
  return own / gpu.peak_flops(Dtype::kFp16);
}

/// The shard calls other kernels in the place of those that the plan names.
std::string operator_of(Attention attention, AttentionPass pass) {
  if (attention != Attention::kFused) return flash_attention_like(pass);
  constexpr const char* kCudnn = "aten::_scaled_dot_product_cudnn_attention";
  return pass == AttentionPass::kForward ? kCudnn : fmt::format("{}_backward", kCudnn);
}

AttentionRate flex_attention_rate(const Gpu& gpu, AttentionShape shape, AttentionKernel kernel) {
  shape.operator_name = flash_attention_like(shape.pass);
  kernel.attention = Attention::kFlash;
  AttentionRate rate = attention_rate(gpu, shape, kernel);
  const TaggedNumber share = flex_attention_share(gpu.rates_id(), shape.pass);
  rate.flops_per_second *= share.value;
  if (share.source == Source::kAssumed) rate.source = Source::kAssumed;
  rate.note += fmt::format("; flex_attention {:.2f} of that: {}", share.value, share.note);
  return rate;
}

}  // namespace

AttentionRate attention_rate(const Gpu& gpu,
                             const AttentionShape& shape,
                             const AttentionKernel& kernel) {
  if (is_flex_attention(shape.operator_name)) return flex_attention_rate(gpu, shape, kernel);
  const AttentionCurve* curve = find_curve(gpu.rates_id(), shape, kernel);
  AttentionRate rate{.source = source_of_rate(gpu)};
  if (curve == nullptr) {
    AttentionShape in_16_bits = shape;
    in_16_bits.is_quantized = false;
    curve = find_curve("a100-sxm-80", in_16_bits, kernel);
    rate.source = Source::kAssumed;
    rate.note = "no rate is published for this GPU: A100's share of peak; ";
  } else if (curve->measured_on != gpu.id) {
    rate.note = note_of_rate(gpu, fmt::format("measured on {}; ", curve->measured_on));
  }
  const Widths own = widths_of(shape), measured = widths_of(*curve);
  if (own.key != own.value && distance(own, measured) > 0) {
    rate.note += fmt::format(
        "measured with keys {} wide and values {} wide; ", measured.key, measured.value);
    rate.source = Source::kAssumed;
  }
  rate.note += fmt::format("{}, {}", curve->kernel, curve->source);
  rate.flops_per_second = gpu.peak_flops(Dtype::kFp16) * share_on_curve(*curve, shape) *
                          occupancy(*curve, shape, gpu.multiprocessors);
  if (shape.is_fp32) {
    rate.flops_per_second *= curve->fp32_share.value_or(fp32_over_fp16(gpu));
    rate.source = Source::kAssumed;
    rate.note += "; fp32 by three products of TF32";
  }
  if (kernel.deterministic && shape.pass == AttentionPass::kBackward) {
    const TaggedNumber share =
        deterministic_share(gpu.rates_id(), kernel.attention, shape.sequence);
    rate.flops_per_second *= share.value;
    if (share.source == Source::kAssumed) rate.source = Source::kAssumed;
    rate.note += fmt::format("; deterministic, {:.2f} of that: {}", share.value, share.note);
  }
  if (kernel.dropout) {
    const double slowdown =
        attention_slowdown(operator_of(kernel.attention, shape.pass), {.dropout = true});
    rate.flops_per_second /= slowdown;
    rate.note += fmt::format("; with dropout {:.2f} times as long", slowdown);
  }
  return rate;
}

}  // namespace estimator
