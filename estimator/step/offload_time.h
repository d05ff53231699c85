// Time of an optimizer step on the host: gradients are copied to the host, its CPUs update the
// parameters, and these are copied back.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// The rates that one rank gets from its machine. Every GPU has its own link, whose two directions
/// do not slow each other; the ranks of a machine share its CPUs evenly.
struct HostShare {
  double to_host_bytes_per_second = 0;
  double to_device_bytes_per_second = 0;
  double parameters_per_second = 0;
};
HostShare host_share(const Plan& plan);

/// The time for `pieces`, which are numbers of parameters in the order of the updates. Gradients
/// and parameters are copied in fp32. With `overlap` a piece is updated as soon as its gradients
/// have arrived and is copied back as soon as it is updated; copy, update and copy back each work
/// on one piece at a time. Without it, each of the three begins when the one before has done all
/// pieces.
OffloadTime offload_time(const std::vector<int64_t>& pieces, const HostShare& host, bool overlap);

}  // namespace estimator
