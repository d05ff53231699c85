#include "estimator/cluster/roofline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "estimator/communication/fabric.h"
#include "estimator/compute/kernel_price.h"
#include "estimator/plan/parallel_layout.h"

namespace estimator {
namespace {

constexpr std::size_t kHotspots = 10;

/// A kernel of the slowest stage, priced, over the iteration.
struct PricedKernel {
  OperatorRecord record;
  OperatorPrice price;

  double seconds() const { return price.seconds * static_cast<double>(record.count); }
};

std::vector<PricedKernel> priced_kernels(const RankProfile& profile, const ComputeTarget& target) {
  const GpuRates rates = target.rates();
  std::vector<PricedKernel> kernels;
  for (const OperatorRecord& kernel : profile.operators) {
    kernels.push_back({kernel, kernel_price(kernel, rates, target)});
  }
  return kernels;
}

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

void add(const PricedKernel& kernel, RooflineRow& row) {
  const auto count = static_cast<double>(kernel.record.count);
  row.count += kernel.record.count;
  row.seconds += kernel.seconds();
  row.flops += count * kernel.record.flops;
  row.bytes += count * kernel.record.bytes;
}

void finish(RooflineRow& row, const ComputeTarget& target, double all_seconds) {
  const auto over = [](double a, double b) { return b > 0 ? a / b : 0; };
  row.share_of_compute = over(row.seconds, all_seconds);
  row.flops_per_byte = over(row.flops, row.bytes);
  row.intensity = intensity_class(row.flops_per_byte);
  row.flops_per_second = over(row.flops, row.seconds);
  row.share_of_peak_flops = row.flops_per_second / target.gpu.peak_flops(target.dtype);
  row.bytes_per_second = over(row.bytes, row.seconds);
  row.share_of_peak_bandwidth = row.bytes_per_second / target.gpu.memory_bandwidth_bytes_per_second;
}

using NameOf = std::function<std::string(const PricedKernel&)>;

/// A row for each name, most seconds first.
std::vector<RooflineRow> rows_by(const std::vector<PricedKernel>& kernels,
                                 const NameOf& name_of,
                                 const ComputeTarget& target) {
  std::vector<RooflineRow> rows;
  double all_seconds = 0;
  for (const PricedKernel& kernel : kernels) {
    const std::string name = name_of(kernel);
    auto row = std::find_if(
        rows.begin(), rows.end(), [&](const RooflineRow& r) { return r.name == name; });
    if (row == rows.end()) row = rows.insert(row, RooflineRow{.name = name});
    add(kernel, *row);
    all_seconds += kernel.seconds();
  }
  for (RooflineRow& row : rows) finish(row, target, all_seconds);
  std::stable_sort(rows.begin(), rows.end(), [](const RooflineRow& a, const RooflineRow& b) {
    return a.seconds > b.seconds;
  });
  return rows;
}

/// Seconds of the step by what they wait for.
struct Waits {
  double compute = 0, bandwidth = 0, launch = 0, nvlink = 0, network = 0, bubble = 0, optimizer = 0,
         data = 0;
};

bool is_forward_or_backward(const PricedKernel& kernel) {
  return is_per_micro_batch(kernel.record.direction);
}

/// The kernels' shares of the estimate's compute: what they do not explain, the host's launches do.
void split_compute(const std::vector<PricedKernel>& kernels, const StepTime& time, Waits& waits) {
  double explained = 0;
  for (const PricedKernel& kernel : kernels) {
    if (!is_forward_or_backward(kernel)) continue;
    explained += kernel.seconds();
    if (kernel.price.bound == Bound::kCompute) waits.compute += kernel.seconds();
    if (kernel.price.bound == Bound::kMemory) waits.bandwidth += kernel.seconds();
    if (kernel.price.bound == Bound::kLaunch) waits.launch += kernel.seconds();
  }
  if (explained == 0) return;
  const double scale = std::min(1.0, time.compute_seconds / explained);
  waits.compute *= scale;
  waits.bandwidth *= scale;
  waits.launch += time.compute_seconds - waits.compute - waits.bandwidth - waits.launch;
}

/// Whether a group's ranks are all in one NVLink or PCIe domain; groups ascend in rank.
bool is_inside_domain(GroupKind kind,
                      const ParallelLayout& layout,
                      int64_t rank,
                      const Fabric& fabric) {
  const RankGroup group = layout.group(kind, rank);
  return fabric.same_domain(group.member(0), group.member(group.size() - 1));
}

void split_communication(const ExposedCommunication& exposed,
                         const ParallelLayout& layout,
                         int64_t rank,
                         const Fabric& fabric,
                         Waits& waits) {
  const auto add = [&](double seconds, GroupKind kind) {
    if (seconds == 0) return;
    (is_inside_domain(kind, layout, rank, fabric) ? waits.nvlink : waits.network) += seconds;
  };
  add(exposed.tensor, GroupKind::kTensor);
  add(exposed.pipeline, GroupKind::kPipeline);
  add(exposed.data, GroupKind::kDataContext);
  add(exposed.context, GroupKind::kContext);
  add(exposed.expert, GroupKind::kExpert);
}

std::vector<StepBound> bounds_of(const Waits& waits, double iteration_seconds) {
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
      {"launches", &Waits::launch, true, "larger micro-batches, fused kernels, CUDA graphs"},
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
    if (seconds <= 0) continue;
    const double gain = seconds / 2 * (part.in_micro_batches ? 1 + bubble_of_busy : 1);
    bounds.push_back({.name = part.name,
                      .seconds = seconds,
                      .share_of_step = seconds / iteration_seconds,
                      .step_seconds_if_twice_as_fast = iteration_seconds - gain,
                      .moved_by = part.moved_by});
  }
  std::stable_sort(bounds.begin(), bounds.end(), [](const StepBound& a, const StepBound& b) {
    return a.seconds > b.seconds;
  });
  return bounds;
}

/// A rank of the class whose micro-batches take longest.
int64_t slowest_rank(const ClusterEstimate& estimate) {
  const auto slowest = std::max_element(estimate.rank_classes.begin(),
                                        estimate.rank_classes.end(),
                                        [](const RankClassEstimate& a, const RankClassEstimate& b) {
                                          return a.forward_seconds + a.backward_seconds <
                                                 b.forward_seconds + b.backward_seconds;
                                        });
  if (slowest == estimate.rank_classes.end()) throw std::logic_error("an estimate has no ranks");
  return slowest->representative_rank;
}

const RankProfile& profile_of_stage(const std::vector<RankProfile>& profiles,
                                    const RankCoordinate& coordinate) {
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const RankProfile& p) {
    return p.coordinate.pipeline == coordinate.pipeline;
  });
  if (found == profiles.end()) throw std::logic_error("the slowest stage has no profile");
  return *found;
}

}  // namespace

IntensityClass intensity_class(double flops_per_byte) {
  if (flops_per_byte < 10) return IntensityClass::kMemoryBound;
  return flops_per_byte <= 100 ? IntensityClass::kBalanced : IntensityClass::kComputeBound;
}

Roofline roofline_of(const Plan& plan,
                     const std::vector<RankProfile>& profiles,
                     const ClusterEstimate& estimate,
                     const Calibration* calibration) {
  const ParallelLayout layout(plan.parallelism);
  const ComputeTarget target = compute_target(plan, gpu_of(plan.cluster), calibration);
  Roofline roofline;
  roofline.plan = estimate.plan;
  roofline.gpu = target.gpu.id;
  roofline.rank = slowest_rank(estimate);
  roofline.iteration_seconds = estimate.time.iteration_seconds;
  roofline.ridge_flops_per_byte =
      target.gpu.peak_flops(target.dtype) / target.gpu.memory_bandwidth_bytes_per_second;
  const auto kernels =
      priced_kernels(profile_of_stage(profiles, layout.coordinate(roofline.rank)), target);
  roofline.operators = rows_by(kernels, operator_name, target);
  roofline.modules = rows_by(
      kernels, [](const PricedKernel& k) { return k.record.module_kind; }, target);
  roofline.phases = rows_by(
      kernels, [](const PricedKernel& k) { return to_string(k.record.direction); }, target);
  roofline.hotspots = rows_by(kernels, hotspot_name, target);
  if (roofline.hotspots.size() > kHotspots) roofline.hotspots.resize(kHotspots);

  Waits waits{.bubble = estimate.time.bubble_seconds,
              .optimizer = estimate.time.optimizer_seconds,
              .data = estimate.time.data_loading_seconds};
  split_compute(kernels, estimate.time, waits);
  split_communication(
      estimate.time.exposed_communication_seconds, layout, roofline.rank, fabric_of(plan), waits);
  roofline.bounds = bounds_of(waits, roofline.iteration_seconds);
  roofline.rates = estimate.rates;
  return roofline;
}

}  // namespace estimator
