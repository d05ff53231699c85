#include "estimator/compute/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include "estimator/base/document.h"
#include "estimator/base/errors.h"

namespace estimator {
namespace {

constexpr const char* kHelp = "make it again with `onerank calibrate --output FILE` on that GPU";

/// Refuses what is faster than any GPU of the kind: rates of work beside the peak.
class SpeedCheck {
 public:
  SpeedCheck(const Gpu& gpu, const std::string& origin) : gpu_(gpu), origin_(origin) {}

  /// Of any type: a product of fp32 may run as one of fewer bits.
  void flops(double work, double seconds, const std::string& row) const {
    constexpr double kAboveBoost = 1.5;  // clocks go above those of the data sheet, a little
    double peak = 0;
    for (const auto& [dtype, name] : enum_names(Dtype{})) {
      if (gpu_.supports(dtype)) peak = std::max(peak, gpu_.peak_flops(dtype));
    }
    check(work / seconds, kAboveBoost * peak, row);
  }
  void bytes(int64_t moved, double seconds, const std::string& row) const {
    constexpr double kInCache = 10;  // small copies never leave the L2 cache
    check(static_cast<double>(moved) / seconds,
          kInCache * gpu_.memory_bandwidth_bytes_per_second,
          row);
  }

 private:
  void check(double rate, double most, const std::string& row) const {
    if (rate <= most) return;
    throw UserError({.what = "the calibration is faster than the GPU can be",
                     .where = fmt::format("{}: {} says {:.4g} a second, {} has {:.4g} at most",
                                          origin_,
                                          row,
                                          rate,
                                          gpu_.id,
                                          most),
                     .help = kHelp});
  }

  const Gpu& gpu_;
  const std::string& origin_;
};

void check_speed(const Calibration& calibration, const Gpu& gpu, const std::string& origin) {
  const SpeedCheck speed(gpu, origin);
  for (std::size_t i = 0; i < calibration.matmul.size(); ++i) {
    const MeasuredMatmul& row = calibration.matmul[i];
    const MatmulShape shape{.m = row.m, .n = row.n, .k = row.k};
    speed.flops(shape.flops(), row.seconds, fmt::format("matmul[{}]", i));
  }
  for (std::size_t i = 0; i < calibration.attention.size(); ++i) {
    const MeasuredAttention& row = calibration.attention[i];
    speed.flops(causal_flops(row), row.seconds, fmt::format("attention[{}]", i));
  }
  const auto check_streams = [&](const std::vector<MeasuredStream>& rows, const char* path) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      speed.bytes(rows[i].bytes, rows[i].seconds, fmt::format("{}[{}]", path, i));
    }
  };
  check_streams(calibration.streams, "streams");
  check_streams(calibration.optimizer, "optimizer");
}

}  // namespace

double causal_flops(const MeasuredAttention& row) {
  const double forward = 2.0 * static_cast<double>(row.batch * row.heads * row.head_width) *
                         static_cast<double>(row.sequence) * static_cast<double>(row.sequence);
  return row.pass == AttentionPass::kForward ? forward : 2.5 * forward;
}

Calibration read_calibration(std::string_view text, const std::string& origin) {
  auto calibration = read_written<Calibration>(text, origin, kHelp);
  const auto by_size = [](const auto& a, const auto& b) { return a.bytes < b.bytes; };
  std::stable_sort(calibration.streams.begin(), calibration.streams.end(), by_size);
  std::stable_sort(calibration.optimizer.begin(), calibration.optimizer.end(), by_size);
  return calibration;
}

void check_calibration_is_of(const Calibration& calibration,
                             const Gpu& gpu,
                             const std::string& origin) {
  const DeviceRecord& device = calibration.device;
  if (device.kind != DeviceKind::kCuda) {
    throw UserError({.what = "the calibration was not measured on a real GPU",
                     .where = fmt::format("{}: device.kind = {}", origin, to_string(device.kind)),
                     .help = fmt::format("run `onerank calibrate` on a machine with {}", gpu.id)});
  }
  if (device.name != gpu.cuda_name) {
    throw UserError({.what = "the calibration is of another GPU than the plan's",
                     .where = fmt::format("{}: device.name = {}, cluster.gpu = {} ({})",
                                          origin,
                                          device.name,
                                          gpu.id,
                                          gpu.cuda_name),
                     .help = "leave the calibration out, or calibrate that GPU"});
  }
  check_speed(calibration, gpu, origin);
}

}  // namespace estimator
