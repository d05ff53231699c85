#include "estimator/compute/calibration.h"

#include <fmt/format.h>

#include <cmath>

#include "estimator/base/files.h"

namespace estimator {
namespace {

constexpr const char* kHelp = "make it again with `onerank calibrate --output FILE` on that GPU";

/// Reports times and sizes that no measurement gives.
class MeasurementCheck {
 public:
  explicit MeasurementCheck(FieldReader& reader) : reader_(reader) {}

  template <class Row>
  void rows(const std::vector<Row>& rows, const std::string& path) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", path, i);
      for (const int64_t size : sizes_of(rows[i])) positive(static_cast<double>(size), place);
      positive(rows[i].seconds, place + ".seconds");
    }
  }

  void positive(double value, const std::string& path) {
    if (value > 0) return;
    reader_.report(path, "a measurement is above 0", fmt::format("{:g}", value), kHelp);
  }

 private:
  static std::vector<int64_t> sizes_of(const MeasuredMatmul& row) { return {row.m, row.n, row.k}; }
  static std::vector<int64_t> sizes_of(const MeasuredAttention& row) {
    return {row.batch, row.heads, row.sequence, row.head_width};
  }
  static std::vector<int64_t> sizes_of(const MeasuredStream& row) { return {row.bytes}; }

  FieldReader& reader_;
};

}  // namespace

double causal_flops(const MeasuredAttention& row) {
  const double forward = 2.0 * static_cast<double>(row.batch * row.heads * row.head_width) *
                         static_cast<double>(row.sequence) * static_cast<double>(row.sequence);
  return row.pass == AttentionPass::kForward ? forward : 2.5 * forward;
}

Calibration read_calibration(std::string_view text, const std::string& origin) {
  const Json json = parse_json(text, origin);
  const auto refuse = [&](std::string where) {
    throw UserError({.what = fmt::format("{} is not a calibration of this version", origin),
                     .where = std::move(where),
                     .help = kHelp});
  };
  if (!json.is_object() || json.value("kind", Json()) != "calibration") {
    refuse("kind is not \"calibration\"");
  }
  if (json.value("schema_version", Json()) != kCalibrationSchemaVersion) {
    refuse(fmt::format("schema_version = {}, this tool reads {}",
                       shown(json.value("schema_version", Json())),
                       kCalibrationSchemaVersion));
  }
  FieldReader reader(origin);
  Calibration calibration;
  reader.read(json, calibration, "");
  MeasurementCheck check(reader);
  check.rows(calibration.matmul, "matmul");
  check.rows(calibration.attention, "attention");
  check.rows(calibration.streams, "streams");
  check.rows(calibration.optimizer, "optimizer");
  check.positive(calibration.launch.kernel_seconds, "launch.kernel_seconds");
  check.positive(calibration.launch.host_seconds, "launch.host_seconds");
  reader.throw_if_any();
  return calibration;
}

void check_calibration_is_of(const Calibration& calibration,
                             const Gpu& gpu,
                             const std::string& origin) {
  const DeviceRecord& device = calibration.device;
  if (device.kind != DeviceKind::kCuda) {
    throw UserError({.what = "a calibration of no real GPU prices nothing",
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
}

}  // namespace estimator
