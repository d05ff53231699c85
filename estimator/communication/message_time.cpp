#include "estimator/communication/message_time.h"

#include <algorithm>

#include "estimator/base/units.h"
#include "estimator/communication/collective_fit.h"
#include "estimator/communication/nccl_tables.h"

namespace estimator {
namespace {

double hop_seconds(const NcclLatencies& hop) {
  constexpr auto kRing = NcclAlgorithm::kRing;
  constexpr auto kSimple = NcclProtocol::kSimple;
  return (nccl_tables().base_latency.at(kRing, kSimple) + hop.at(kRing, kSimple)) * kMicrosecond;
}

const NcclLatencies& hop_in_domain(const Fabric& fabric) {
  const NcclTables& tables = nccl_tables();
  return fabric.intra.kind == "nvlink" ? tables.nvlink_latency : tables.pci_latency;
}

double latency_in_domain(const Fabric& fabric) { return hop_seconds(hop_in_domain(fabric)); }

double latency_across() { return hop_seconds(nccl_tables().network_latency); }

/// Without NVLink, bytes for a NIC also pass the GPU's PCIe link.
bool is_nic_behind_link(const Fabric& fabric) { return fabric.intra.kind != "nvlink"; }

double seconds_in_domain(int64_t bytes, const Fabric& fabric) {
  return latency_in_domain(fabric) +
         static_cast<double>(bytes) / fabric.intra.achieved_bytes_per_second;
}

double seconds_across(int64_t bytes, double network_bytes_per_second, const Fabric& fabric) {
  const double link = fabric.intra.achieved_bytes_per_second;
  const double rate = is_nic_behind_link(fabric) ? std::min(network_bytes_per_second, link)
                                                 : network_bytes_per_second;
  return latency_across() + static_cast<double>(bytes) / rate;
}

}  // namespace

double spine_slowdown(const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.ranks_off_spine() >= placement.ranks) return 1;
  const double domains_of_pod = static_cast<double>(placement.ranks_off_spine()) /
                                static_cast<double>(placement.ranks_per_domain);
  return std::max(1.0, fabric.spine_oversubscription / domains_of_pod);
}

double spine_slowdown_of_pairs(const GroupPlacement& placement, const Fabric& fabric) {
  const auto beyond = [&](int64_t ranks) { return static_cast<double>(placement.ranks - ranks); };
  if (placement.domains() == 1) return 1;
  return std::max(1.0,
                  fabric.spine_oversubscription * beyond(placement.ranks_off_spine()) /
                      beyond(placement.ranks_per_domain));
}

double message_seconds(int64_t bytes, Distance distance, const Fabric& fabric) {
  if (distance == Distance::kInDomain) return seconds_in_domain(bytes, fabric);
  const double spine = distance == Distance::kAcrossPods ? fabric.spine_oversubscription : 1;
  return seconds_across(bytes, fabric.network_bytes_per_second() / spine, fabric);
}

double signal_seconds(const Fabric& fabric) {
  return hop_in_domain(fabric).at(NcclAlgorithm::kRing, NcclProtocol::kLl) * kMicrosecond;
}

double ring_message_seconds(int64_t bytes, const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.domains() == 1) return seconds_in_domain(bytes, fabric);
  const double shares = static_cast<double>(placement.ranks_per_domain) * fabric.nics_per_gpu;
  const double nics = std::min(shares, std::max(1.0, fabric.nics_per_gpu));
  const double network = nics * fabric.inter.achieved_bytes_per_second;
  return seconds_across(bytes, network / spine_slowdown(placement, fabric), fabric);
}

double all_to_all_seconds(int64_t bytes, const GroupPlacement& placement, const Fabric& fabric) {
  const auto n = static_cast<double>(placement.ranks);
  const auto together = static_cast<double>(placement.ranks_per_domain);
  const double part = static_cast<double>(bytes) / n / collective_fit().all_to_all_share.at(bytes);
  const double through_link = ((is_nic_behind_link(fabric) ? n : together) - 1) * part;
  const double inside =
      latency_in_domain(fabric) + through_link / fabric.intra.achieved_bytes_per_second;
  if (placement.domains() == 1) return inside;
  const double network = fabric.network_bytes_per_second();
  const double through_nic =
      (n - together) * part / network * spine_slowdown_of_pairs(placement, fabric);
  const double outside =
      latency_across() + (n - together) * kPostMicroseconds * kMicrosecond + through_nic;
  return std::max(inside, outside);
}

}  // namespace estimator
