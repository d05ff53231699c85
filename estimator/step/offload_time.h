// An optimizer's step on the host: gradients go there, its CPUs update, parameters come back.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// What one rank has of its machine. Every GPU has its own lanes, and both directions at once keep
/// their rates; the ranks of a machine share its CPUs evenly.
struct HostShare {
  double to_host_bytes_per_second = 0;
  double to_device_bytes_per_second = 0;
  double parameters_per_second = 0;
};
HostShare host_share(const Plan& plan);

/// Of the pieces' parameters, which travel in fp32 both ways, in their order. With `overlap` a
/// piece is updated when its gradients are there and travels back when it is updated, each of the
/// three working on one piece at a time; else all wait for all.
OffloadTime offload_time(const std::vector<int64_t>& pieces, const HostShare& host, bool overlap);

}  // namespace estimator
