#include "estimator/step/offload_time.h"

#include <algorithm>

#include "estimator/compute/host_rates.h"

namespace estimator {
namespace {

constexpr double kBytesOfParameter = 4;  // fp32 gradients, fp32 master weights

}  // namespace

HostShare host_share(const Plan& plan) {
  const HostLink& link = host_link(plan.cluster.gpu);
  const auto ranks = static_cast<double>(plan.cluster.gpus_per_node);
  return {.to_host_bytes_per_second = link.to_host_bytes_per_second,
          .to_device_bytes_per_second = link.to_device_bytes_per_second,
          .parameters_per_second = cpu_adam_rate(plan).value / ranks};
}

OffloadTime offload_time(const std::vector<int64_t>& pieces, const HostShare& host, bool overlap) {
  OffloadTime time;
  double updated = 0, back = 0;  // when the pieces so far are
  for (const int64_t piece : pieces) {
    const auto parameters = static_cast<double>(piece);
    const double update = parameters / host.parameters_per_second;
    const double return_trip = kBytesOfParameter * parameters / host.to_device_bytes_per_second;
    time.to_host_seconds += kBytesOfParameter * parameters / host.to_host_bytes_per_second;
    time.update_seconds += update;
    time.to_device_seconds += return_trip;
    updated = std::max(updated, time.to_host_seconds) + update;
    back = std::max(back, updated) + return_trip;
  }
  time.total_seconds =
      overlap ? back : time.to_host_seconds + time.update_seconds + time.to_device_seconds;
  return time;
}

}  // namespace estimator
