#include "estimator/replay/gpu_demand.h"

#include <algorithm>

namespace estimator {
namespace {

/// The largest share that works may have of something of which they need `needs` (0 to 1), if those
/// that need less have what they need.
double fair_share(std::vector<double>& needs) {
  std::sort(needs.begin(), needs.end());
  double left = 1;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const double equal = left / static_cast<double>(needs.size() - i);
    if (needs[i] > equal) return equal;
    left -= needs[i];
  }
  return 1;
}

}  // namespace

void GpuDemand::add(const WorkPrice& price) {
  const Occupancy& occupancy = price.occupancy;
  const bool communicates = price.work_class == WorkClass::kCommunication;
  (communicates ? nccl_ : kernels_) += occupancy.multiprocessors;
  ports_.link += occupancy.ports.link;
  ports_.nic += occupancy.ports.nic;
  if (occupancy.memory > 0) memory_needs_.push_back(occupancy.memory);
}

void GpuDemand::share_memory() { memory_share_ = fair_share(memory_needs_); }

double GpuDemand::rate(const WorkPrice& price) const {
  const double needed = price.occupancy.memory;
  return std::min(needed > memory_share_ ? memory_share_ / needed : 1, rate_of_units(price));
}

double GpuDemand::rate_of_units(const WorkPrice& price) const {
  const Occupancy& occupancy = price.occupancy;
  if (price.work_class == WorkClass::kCommunication) {
    const double link = occupancy.ports.link > 0 ? ports_.link : 0;
    const double nic = occupancy.ports.nic > 0 ? ports_.nic : 0;
    return 1 / std::max({1.0, link, nic});
  }
  if (occupancy.multiprocessors == 0) return 1;
  constexpr double kLeastShare = 0.1;
  const bool gives_way = is_bound_by_arithmetic(price) && !occupancy.is_persistent;
  const double left = gives_way ? std::max(kLeastShare, 1 - nccl_) : 1;
  return std::min(1.0, left / kernels_);
}

}  // namespace estimator
