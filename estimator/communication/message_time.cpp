#include "estimator/communication/message_time.h"

#include <algorithm>

#include "estimator/base/units.h"
#include "estimator/communication/collective_fit.h"
#include "estimator/communication/nccl_tables.h"

namespace estimator {
namespace {

constexpr double kPostSeconds = 1e-6;  // NCCL's getNetOverhead on a CPU of Intel

double hop_seconds(const NcclLatencies& hop) {
  constexpr auto kRing = NcclAlgorithm::kRing;
  constexpr auto kSimple = NcclProtocol::kSimple;
  return (nccl_tables().base_latency.at(kRing, kSimple) + hop.at(kRing, kSimple)) * kMicrosecond;
}

double latency_in_domain(const Fabric& fabric) {
  const NcclTables& tables = nccl_tables();
  return hop_seconds(fabric.intra.kind == "nvlink" ? tables.nvlink_latency : tables.pci_latency);
}

double latency_across() { return hop_seconds(nccl_tables().network_latency); }

/// Without NVLink, bytes for a NIC also pass the GPU's PCIe link.
bool is_nic_behind_link(const Fabric& fabric) { return fabric.intra.kind != "nvlink"; }

}  // namespace

double message_seconds(int64_t bytes, bool in_domain, const Fabric& fabric) {
  const auto size = static_cast<double>(bytes);
  const double link = fabric.intra.achieved_bytes_per_second;
  if (in_domain) return latency_in_domain(fabric) + size / link;
  const double network = fabric.network_bytes_per_second();
  return latency_across() + size / (is_nic_behind_link(fabric) ? std::min(network, link) : network);
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
  const double in_pod = static_cast<double>(placement.ranks_per_pod);
  const double through_nic = (n - together) * part / network;
  const double through_spine = (n - in_pod) * part * fabric.spine_oversubscription / network;
  const double outside =
      latency_across() + (n - together) * kPostSeconds + std::max(through_nic, through_spine);
  return std::max(inside, outside);
}

}  // namespace estimator
