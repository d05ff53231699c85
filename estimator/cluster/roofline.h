// Where the time of one iteration goes on the stage that is busy longest: each kernel compared with
// the roofline of its GPU, sums by operator, module and phase, and the resources that bound the
// step.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/json_value.h"
#include "estimator/cluster/cluster_estimate.h"
#include "estimator/compute/calibration.h"
#include "estimator/compute/compute_time.h"

namespace estimator {

/// The class of a kernel by its FLOP per byte moved: under 10, 10 to 100, over 100.
enum class IntensityClass { kMemoryBound, kBalanced, kComputeBound };
constexpr std::array<EnumName<IntensityClass>, 3> enum_names(IntensityClass) {
  return {{{IntensityClass::kMemoryBound, "memory-bound"},
           {IntensityClass::kBalanced, "balanced"},
           {IntensityClass::kComputeBound, "compute-bound"}}};
}
IntensityClass intensity_class(double flops_per_byte);

/// A group of kernels of one iteration on one GPU.
struct RooflineRow {
  std::string name;
  int64_t count = 0;
  double seconds = 0;
  double share_of_compute = 0;
  double flops = 0;
  double bytes = 0;
  double flops_per_byte = 0;
  IntensityClass intensity = IntensityClass::kMemoryBound;
  double flops_per_second = 0;
  double share_of_peak_flops = 0;
  double bytes_per_second = 0;
  double share_of_peak_bandwidth = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, RooflineRow& row) {
  visit("name", row.name, "which kernels");
  visit("count", row.count, "calls in one iteration");
  visit("seconds", row.seconds, "on the GPU");
  visit("share_of_compute", row.share_of_compute, "of the seconds of all kernels");
  visit("flops", row.flops, "2 for a multiply-add");
  visit("bytes", row.bytes, "read and written");
  visit("flops_per_byte", row.flops_per_byte, "arithmetic intensity");
  visit("intensity", row.intensity, "under 10, 10 to 100, over 100 FLOP/byte");
  visit("flops_per_second", row.flops_per_second, "reached");
  visit("share_of_peak_flops",
        row.share_of_peak_flops,
        "of the dense peak of the plan's dtype, of products in FP8 or FP4 of that of these");
  visit("bytes_per_second", row.bytes_per_second, "reached");
  visit("share_of_peak_bandwidth", row.share_of_peak_bandwidth, "of the memory's peak");
}

/// A resource that bounds a part of the step.
struct StepBound {
  std::string name;
  double seconds = 0;
  double share_of_step = 0;
  double step_seconds_if_twice_as_fast = 0;
  std::string moved_by;
};
template <class Visitor>
void visit_fields(Visitor& visit, StepBound& bound) {
  visit("name", bound.name, "compute, bandwidth, launch, NVLink, network, bubble or optimizer");
  visit("seconds", bound.seconds, "of one iteration");
  visit("share_of_step", bound.share_of_step, "of the iteration");
  visit("step_seconds_if_twice_as_fast",
        bound.step_seconds_if_twice_as_fast,
        "step time if this resource were twice as fast; the bubble shrinks with the time of a "
        "micro-batch");
  visit("moved_by", bound.moved_by, "what would make it less");
}

struct Roofline {
  DocumentHead head{1, "roofline"};
  JsonValue plan;
  std::vector<std::string> command;  ///< of a program, in place of a plan
  std::string gpu;
  int64_t rank = 0;  ///< a rank of the stage that is busy longest
  double iteration_seconds = 0;
  double ridge_flops_per_byte = 0;
  std::vector<StepBound> bounds;
  std::vector<RooflineRow> operators, modules, phases, hotspots;
  std::vector<RateTerm> rates;
};
template <class Visitor>
void visit_fields(Visitor& visit, Roofline& roofline) {
  visit_head(visit, roofline.head);
  visit("plan", roofline.plan, "the resolved plan; null for a program");
  visit("command", roofline.command, "the program and its arguments; empty for a plan");
  visit("gpu", roofline.gpu, "whose roofline");
  visit("rank", roofline.rank, "a rank of the stage that is busy longest");
  visit("iteration_seconds", roofline.iteration_seconds, "of the whole step");
  visit("ridge_flops_per_byte",
        roofline.ridge_flops_per_byte,
        "where the peaks of arithmetic and memory meet");
  visit("bounds", roofline.bounds, "what the step waits for, most first");
  visit("operators", roofline.operators, "kernels by operator");
  visit("modules", roofline.modules, "kernels by part of the model");
  visit("phases", roofline.phases, "kernels by direction");
  visit("hotspots", roofline.hotspots, "single kernels, most seconds first");
  visit("rates", roofline.rates, "how fast the GPU was taken to be");
}

/// `estimate` must be the result of estimate_cluster() for the same arguments.
Roofline roofline_of(const Plan& plan,
                     const std::vector<RankProfile>& profiles,
                     const ClusterEstimate& estimate,
                     const Calibration* calibration = nullptr);

}  // namespace estimator
