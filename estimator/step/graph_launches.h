// Which events of a rank's step lie in CUDA graphs, and what a graph costs the host and the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/step_order.h"

namespace estimator {

struct GraphLaunches {
  static constexpr int64_t kNone = -1;

  /// Of each event the number of its graph, kNone outside of graphs; empty if there are none.
  /// Events of the same graph follow each other.
  std::vector<int64_t> graph_of_event;
  double launch_seconds = 0;  ///< on the host, beside the call from Python that launches it
  double saved_seconds = 0;   ///< on the GPU, of the gap before each kernel

  int64_t graph_of(std::size_t event) const {
    return graph_of_event.empty() ? kNone : graph_of_event[event];
  }
};

GraphLaunches graph_launches(const Plan& plan, const StepOrder& order, const LaunchCost& launch);

}  // namespace estimator
