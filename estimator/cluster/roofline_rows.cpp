#include "estimator/cluster/roofline_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace estimator {
namespace {

constexpr std::size_t kHotspots = 10;

/// Of the GPU, with which kernels are compared.
struct Peaks {
  double flops = 0;  ///< in the type of the plan
  double eight_bit_flops = 0, four_bit_flops = 0;
  double bandwidth = 0;

  double flops_of(const OperatorRecord& record) const {
    if (!is_matmul(record) || !is_scaled_type(record.dtype)) return flops;
    return record.dtype.starts_with("Float8") ? eight_bit_flops : four_bit_flops;
  }
};

using NameOf = std::function<std::string(const PricedKernel&)>;

/// "aten::mul_" and "aten::mul" are one kernel to a reader, "mul".
std::string operator_name(const PricedKernel& kernel) {
  std::string name = kernel.record.name;
  if (const std::size_t scope = name.rfind("::"); scope != std::string::npos) {
    name.erase(0, scope + 2);
  }
  name.erase(0, name.find_first_not_of('_'));
  name.erase(name.find_last_not_of('_') + 1);
  return name;
}

std::string hotspot_name(const PricedKernel& kernel) {
  std::vector<std::string> shapes;
  for (const auto& shape : kernel.record.shapes) {
    shapes.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
    if (shapes.size() == 3) break;
  }
  return fmt::format("{} {} {} {}",
                     to_string(kernel.record.direction),
                     kernel.record.module_kind,
                     operator_name(kernel),
                     fmt::join(shapes, " x "));
}

/// Until finish() the share of the peak is the seconds that the work takes at the peak.
void add(const PricedKernel& kernel, const Peaks& peaks, RooflineRow& row) {
  const auto count = static_cast<double>(kernel.record.count);
  row.count += kernel.record.count;
  row.seconds += kernel.seconds();
  row.flops += count * kernel.record.flops;
  row.bytes += count * kernel.record.bytes;
  row.share_of_peak_flops += count * kernel.record.flops / peaks.flops_of(kernel.record);
}

void finish(RooflineRow& row, const Peaks& peaks, double all_seconds) {
  const auto over = [](double a, double b) { return b > 0 ? a / b : 0; };
  row.share_of_compute = over(row.seconds, all_seconds);
  row.flops_per_byte = over(row.flops, row.bytes);
  row.intensity = intensity_class(row.flops_per_byte);
  row.flops_per_second = over(row.flops, row.seconds);
  row.share_of_peak_flops = over(row.share_of_peak_flops, row.seconds);
  row.bytes_per_second = over(row.bytes, row.seconds);
  row.share_of_peak_bandwidth = row.bytes_per_second / peaks.bandwidth;
}

/// A row for each name, most seconds first.
std::vector<RooflineRow> rows_by(const std::vector<PricedKernel>& kernels,
                                 const NameOf& name_of,
                                 const Peaks& peaks) {
  std::vector<RooflineRow> rows;
  double all_seconds = 0;
  for (const PricedKernel& kernel : kernels) {
    const std::string name = name_of(kernel);
    auto row = std::find_if(
        rows.begin(), rows.end(), [&](const RooflineRow& r) { return r.name == name; });
    if (row == rows.end()) row = rows.insert(row, RooflineRow{.name = name});
    add(kernel, peaks, *row);
    all_seconds += kernel.seconds();
  }
  for (RooflineRow& row : rows) finish(row, peaks, all_seconds);
  std::stable_sort(rows.begin(), rows.end(), [](const RooflineRow& a, const RooflineRow& b) {
    return a.seconds > b.seconds;
  });
  return rows;
}

}  // namespace

IntensityClass intensity_class(double flops_per_byte) {
  if (flops_per_byte < 10) return IntensityClass::kMemoryBound;
  return flops_per_byte <= 100 ? IntensityClass::kBalanced : IntensityClass::kComputeBound;
}

void set_rows(const std::vector<PricedKernel>& kernels,
              const Gpu& gpu,
              Dtype dtype,
              Roofline& roofline) {
  const double flops = gpu.peak_flops(dtype);
  const Peaks peaks = {.flops = flops,
                       .eight_bit_flops = gpu.peak_flops_per_second.fp8.value_or(flops),
                       .four_bit_flops = gpu.peak_flops_per_second.fp4.value_or(flops),
                       .bandwidth = gpu.memory_bandwidth_bytes_per_second};
  roofline.gpu = gpu.id;
  roofline.ridge_flops_per_byte = peaks.flops / peaks.bandwidth;
  roofline.operators = rows_by(kernels, operator_name, peaks);
  roofline.modules = rows_by(
      kernels, [](const PricedKernel& k) { return k.record.module_kind; }, peaks);
  roofline.phases = rows_by(
      kernels, [](const PricedKernel& k) { return to_string(k.record.direction); }, peaks);
  roofline.hotspots = rows_by(kernels, hotspot_name, peaks);
  if (roofline.hotspots.size() > kHotspots) roofline.hotspots.resize(kHotspots);
}

std::vector<StepBound> bounds_of(const Waits& waits,
                                 double iteration_seconds,
                                 const SecondsIfHalved& if_halved) {
  struct Part {
    const char* name;
    double Waits::*seconds;
    bool in_micro_batches;  ///< the bubble is made of the same
    const char* moved_by;
  };
  static constexpr Part kParts[] = {
      {"compute",
       &Waits::compute,
       true,
       "less recompute, a faster dtype, larger products (less tensor parallelism)"},
      {"memory bandwidth",
       &Waits::bandwidth,
       true,
       "fused kernels, flash attention, less recompute, sequence parallelism"},
      {"launches and sharing",
       &Waits::launch,
       true,
       "larger micro-batches, fused kernels, CUDA graphs; NCCL beside products costs, too"},
      {"link inside a machine",
       &Waits::nvlink,
       true,
       "less tensor parallelism, overlap, larger micro-batches"},
      {"network",
       &Waits::network,
       false,
       "overlap of the reduction, more micro-batches a step, groups inside machines"},
      {"pipeline bubble",
       &Waits::bubble,
       false,
       "more micro-batches, fewer stages, interleaved stages"},
      {"optimizer",
       &Waits::optimizer,
       false,
       "the distributed optimizer, more micro-batches a step"},
      {"data loading", &Waits::data, false, "more loader workers, data prepared beforehand"},
  };
  const double busy = waits.compute + waits.bandwidth + waits.launch + waits.nvlink;
  const double bubble_of_busy = busy > 0 ? waits.bubble / busy : 0;
  std::vector<StepBound> bounds;
  for (const Part& part : kParts) {
    const double seconds = waits.*part.seconds;
    constexpr double kRounding = 1e-12;  // of sums that are equal but for it
    if (seconds <= kRounding * iteration_seconds) continue;
    const double gain = seconds / 2 * (part.in_micro_batches ? 1 + bubble_of_busy : 1);
    bounds.push_back({.name = part.name,
                      .seconds = seconds,
                      .share_of_step = seconds / iteration_seconds,
                      .step_seconds_if_twice_as_fast =
                          if_halved(part.seconds).value_or(iteration_seconds - gain),
                      .moved_by = part.moved_by});
  }
  std::stable_sort(bounds.begin(), bounds.end(), [](const StepBound& a, const StepBound& b) {
    return a.seconds > b.seconds;
  });
  return bounds;
}

}  // namespace estimator
