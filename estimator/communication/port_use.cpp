#include "estimator/communication/port_use.h"

#include <algorithm>

namespace estimator {
namespace {

/// Bytes that a rank sends through each port.
struct PortBytes {
  double link = 0;
  double nic = 0;
};

PortBytes message_bytes(int64_t bytes, bool in_domain) {
  const auto size = static_cast<double>(bytes);
  return in_domain ? PortBytes{.link = size} : PortBytes{.nic = size};
}

double sent_bytes(const CollectiveCall& call, double ranks, bool nvls) {
  const auto size = static_cast<double>(call.bytes);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return nvls ? size * (1 + 1 / ranks) : 2 * size * (1 - 1 / ranks);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAllToAll:
      return size * (1 - 1 / ranks);
    default:
      return size;
  }
}

PortBytes bytes_of(const CollectiveCall& call, const GroupPlacement& placement, bool nvls) {
  const auto n = static_cast<double>(placement.ranks);
  const auto together = static_cast<double>(placement.ranks_per_domain);
  const double sent = sent_bytes(call, n, nvls);
  if (placement.domains() == 1) return {.link = sent};
  const double leaves =
      call.kind == CollectiveKind::kAllToAll ? (n - together) / (n - 1) : 1 / together;
  return {.link = sent * (1 - leaves), .nic = sent * leaves};
}

PortUse use_of(const PortBytes& bytes, double seconds, const Fabric& fabric) {
  if (seconds <= 0) return {};
  const double on_link = bytes.link + (fabric.intra.kind == "nvlink" ? 0 : bytes.nic);
  return {.link = std::min(1.0, on_link / fabric.intra.achieved_bytes_per_second / seconds),
          .nic = std::min(1.0, bytes.nic / fabric.network_bytes_per_second() / seconds)};
}

}  // namespace

PortUse port_use(const CollectiveCall& call,
                 const GroupPlacement& placement,
                 const CollectiveTime& time,
                 const Fabric& fabric) {
  const bool nvls = time.option && is_nvls(time.option->algorithm);
  return use_of(bytes_of(call, placement, nvls), time.seconds, fabric);
}

PortUse send_port_use(
    int64_t bytes, int64_t from_rank, int64_t to_rank, double seconds, const Fabric& fabric) {
  return use_of(message_bytes(bytes, fabric.same_domain(from_rank, to_rank)), seconds, fabric);
}

}  // namespace estimator
