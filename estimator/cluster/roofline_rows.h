// The rows and bounds of a roofline, of plans and of programs alike.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "estimator/cluster/roofline.h"

namespace estimator {

/// A kernel, priced. Its count is over the iteration.
struct PricedKernel {
  OperatorRecord record;
  OperatorPrice price;

  double seconds() const { return price.seconds * static_cast<double>(record.count); }
};

/// Sets the GPU, its ridge, and the rows by operator, module, phase and hotspot.
void set_rows(const std::vector<PricedKernel>& kernels,
              const Gpu& gpu,
              Dtype dtype,
              Roofline& roofline);

/// Seconds of the step by what they wait for.
struct Waits {
  double compute = 0, bandwidth = 0, launch = 0, nvlink = 0, network = 0, bubble = 0, optimizer = 0,
         data = 0;
};

/// The step if what waits for this took half as long; empty if nobody knows better than its part of
/// the step says.
using SecondsIfHalved = std::function<std::optional<double>(double Waits::*)>;

/// A bound for each part that is not 0, most seconds first.
std::vector<StepBound> bounds_of(const Waits& waits,
                                 double iteration_seconds,
                                 const SecondsIfHalved& if_halved);

}  // namespace estimator
