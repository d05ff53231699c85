#include "estimator/compute/attention_rate.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/interpolate.h"
#include "estimator/compute/deterministic_attention.h"
#include "estimator/hardware/database.h"

namespace onerank_data {
extern const std::string_view attention_json;
}

namespace estimator {
namespace {

const std::vector<AttentionCurve>& curves() {
  static const auto rows =
      read_database<AttentionCurve>(onerank_data::attention_json, "attention.json");
  return rows;
}

/// The curve for `gpu_id` whose head width is nearest, or null.
const AttentionCurve* find_curve(const std::string& gpu_id,
                                 const AttentionShape& shape,
                                 Attention attention) {
  const AttentionCurve* nearest = nullptr;
  for (const AttentionCurve& row : curves()) {
    if (!contains(row.gpus, gpu_id) || !contains(row.passes, shape.pass) ||
        row.attention.value_or(attention) != attention) {
      continue;
    }
    const auto distance = [&](const AttentionCurve& c) {
      return std::abs(c.head_width - shape.head_width);
    };
    if (nearest == nullptr || distance(row) < distance(*nearest)) nearest = &row;
  }
  return nearest;
}

/// Share of the rate that a call with few heads reaches. A block does 256 rows of one head, and
/// under a causal mask half of the keys on average.
double occupancy(const AttentionCurve& curve,
                 const AttentionShape& shape,
                 int64_t multiprocessors) {
  constexpr int64_t kBlockRows = 256;
  const int64_t blocks =
      shape.batch * shape.heads * ((shape.sequence + kBlockRows - 1) / kBlockRows);
  const double waves = 0.5 * static_cast<double>(blocks) / static_cast<double>(multiprocessors);
  return waves / (waves + curve.half_occupied_at_waves);
}

double share_on_curve(const AttentionCurve& curve, const AttentionShape& shape) {
  const Gpu* measured = find_gpu(curve.measured_on);
  if (measured == nullptr) throw std::logic_error("attention.json: unknown GPU");
  const auto sequence = static_cast<double>(shape.sequence);
  return interpolate_log(curve.sequence, curve.teraflops, sequence) * 1e12 /
         measured->peak_flops(Dtype::kFp16);
}

}  // namespace

AttentionRate attention_rate(const Gpu& gpu,
                             const AttentionShape& shape,
                             const AttentionKernel& kernel) {
  const AttentionCurve* curve = find_curve(gpu.id, shape, kernel.attention);
  AttentionRate rate{.source = Source::kPublished};
  if (curve == nullptr) {
    curve = find_curve("a100-sxm-80", shape, kernel.attention);
    rate.source = Source::kAssumed;
    rate.note = "no rate is published for this GPU: A100's share of peak; ";
  } else if (curve->measured_on != gpu.id) {
    rate.note = fmt::format("measured on {}; ", curve->measured_on);
  }
  rate.note += fmt::format("{}, {}", curve->kernel, curve->source);
  rate.flops_per_second = gpu.peak_flops(Dtype::kFp16) * share_on_curve(*curve, shape) *
                          occupancy(*curve, shape, gpu.multiprocessors);
  if (kernel.deterministic && shape.pass == AttentionPass::kBackward) {
    const TaggedNumber share = deterministic_share(gpu.id, kernel.attention, shape.sequence);
    rate.flops_per_second *= share.value;
    if (share.source == Source::kAssumed) rate.source = Source::kAssumed;
    rate.note += fmt::format("; deterministic, {:.2f} of that: {}", share.value, share.note);
  }
  return rate;
}

}  // namespace estimator
