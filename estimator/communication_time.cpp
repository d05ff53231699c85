#include "estimator/communication_time.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "estimator/interpolate.h"
#include "estimator/units.h"

namespace estimator {
namespace {

/// NCCL's wire formats: LL and LL128 carry a flag with the data, Simple synchronises by chunk. Hops
/// are relative to Simple's, which the link database holds. Shares of the bus are Hopper's: LL
/// moves at most 141 of 360 GB/s on 8 GPUs and 20.4 of 384 GB/s on more machines; a tree reaches 92
/// % of a ring.
struct Protocol {
  double ring_base_seconds = 8.4e-6;
  double tree_base_seconds = 8.4e-6;
  double nvlink_hop = 1;
  double pcie_hop = 1;
  double ring_network_hop = 1;
  double tree_network_hop = 1;
  double ring_share_in_island = 1;
  double ring_share_across = 1;
  double tree_share = 0.92;
  bool needs_nvlink = false;
};
constexpr Protocol kSimple;
constexpr Protocol kLl = {.ring_base_seconds = 6.6e-6,
                          .tree_base_seconds = 6.8e-6,
                          .nvlink_hop = 0.6 / 3.4,
                          .pcie_hop = 1.0 / 5.7,
                          .ring_network_hop = 2.7 / 14,
                          .tree_network_hop = 5.0 / 14,
                          .ring_share_in_island = 0.39,
                          .ring_share_across = 0.053,
                          .tree_share = 0.053};
constexpr Protocol kLl128 = {.ring_base_seconds = 14.0e-6,
                             .tree_base_seconds = 14.0e-6,
                             .nvlink_hop = 1.9 / 3.4,
                             .pcie_hop = 2.5 / 5.7,
                             .ring_network_hop = 4.0 / 14,
                             .tree_network_hop = 8.5 / 14,
                             .ring_share_in_island = 0.92,
                             .ring_share_across = 0.92,
                             .tree_share = 0.92 * 120 / 128,
                             .needs_nvlink = true};
constexpr std::array<Protocol, 3> kProtocols = {kLl, kLl128, kSimple};

constexpr double kNvlsSeconds = 25e-6;
constexpr double kNvlsTreeHopSeconds = 20.9e-6;
constexpr int64_t kFewestNvlsRanks = 5;  // below, NCCL prefers the ring (measured on H200)

struct Pat {
  double base_seconds = 8e-6;
  double rank_seconds = 2.8e-6;
  double hop_divisor = 3.5;
  double share = 0.75;
};
constexpr Pat kPat;

/// A group on a fabric, in the words of the header's formulas.
struct Path {
  double n, islands, per_island;
  double bus_bytes_per_second;
  const Fabric& fabric;

  Path(const GroupPlacement& placement, const Fabric& fabric_in)
      : n(static_cast<double>(placement.ranks)),
        islands(static_cast<double>(placement.islands())),
        per_island(static_cast<double>(placement.ranks_per_island)),
        bus_bytes_per_second(fabric_in.intra.achieved_bytes_per_second),
        fabric(fabric_in) {
    if (crosses_network()) {
      const double out = per_island * fabric.network_bytes_per_second();
      bus_bytes_per_second = per_island > 1 ? std::min(bus_bytes_per_second, out) : out;
    }
  }
  bool crosses_network() const { return islands > 1; }
  bool has_nvlink() const { return fabric.intra.kind == "nvlink"; }
  bool has_nvls() const {
    return fabric.intra.nvls_bytes_per_second && per_island >= kFewestNvlsRanks;
  }
  double hop(const Protocol& protocol) const {
    return fabric.intra.latency_seconds * (has_nvlink() ? protocol.nvlink_hop : protocol.pcie_hop);
  }
  double network_hop(double share) const { return fabric.inter.latency_seconds * share; }
  bool can_use(const Protocol& protocol) const {
    return !protocol.needs_nvlink || has_nvlink() || per_island == 1;
  }
};

/// A ring that goes round `rounds` times and moves `traffic_bytes` through each link.
double ring_seconds(const Path& path,
                    const Protocol& protocol,
                    double rounds,
                    double traffic_bytes) {
  const double share =
      path.crosses_network() ? protocol.ring_share_across : protocol.ring_share_in_island;
  const double latency =
      protocol.ring_base_seconds +
      rounds * ((path.n - path.islands) * path.hop(protocol) +
                (path.islands - 1) * path.network_hop(protocol.ring_network_hop));
  return latency + traffic_bytes / (path.bus_bytes_per_second * share);
}

double best_ring_seconds(const Path& path, double rounds, double traffic_bytes) {
  double best = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : kProtocols) {
    if (!path.can_use(protocol)) continue;
    best = std::min(best, ring_seconds(path, protocol, rounds, traffic_bytes));
  }
  return best;
}

double best_tree_seconds(const Path& path, double bytes) {
  double best = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : kProtocols) {
    if (!path.can_use(protocol)) continue;
    const double latency =
        protocol.tree_base_seconds +
        2 * ((path.per_island - 1) * path.hop(protocol) +
             std::floor(std::log2(path.islands)) * path.network_hop(protocol.tree_network_hop));
    best = std::min(best, latency + 2 * bytes / (path.bus_bytes_per_second * protocol.tree_share));
  }
  return best;
}

double nvls_seconds(const Path& path, double traffic_bytes) {
  double latency = kNvlsSeconds;
  double bus = *path.fabric.intra.nvls_bytes_per_second;
  if (path.crosses_network()) {
    latency += 2 * std::floor(std::log2(path.islands)) * kNvlsTreeHopSeconds;
    bus = std::min(bus, path.per_island * path.fabric.network_bytes_per_second());
  }
  return latency + traffic_bytes / bus;
}

double all_reduce_seconds(const Path& path, double bytes) {
  const double traffic = 2 * (path.n - 1) / path.n * bytes;
  double best = best_ring_seconds(path, 2, traffic);
  if (path.crosses_network()) best = std::min(best, best_tree_seconds(path, bytes));
  if (path.has_nvls()) best = std::min(best, nvls_seconds(path, traffic));
  return best;
}

/// All-gather and reduce-scatter; `bytes` is the gathered size.
double gather_seconds(const Path& path, double bytes) {
  const double traffic = (path.n - 1) / path.n * bytes;
  const double ring = best_ring_seconds(path, 1, traffic);
  if (path.per_island > 1) return ring;
  const double pat =
      kPat.base_seconds + path.network_hop(1) * std::log2(path.n) / kPat.hop_divisor +
      kPat.rank_seconds * path.n + traffic / (path.bus_bytes_per_second * kPat.share);
  return std::min(ring, pat);
}

double island_message_seconds(double bytes, const Fabric& fabric) {
  return kSimple.ring_base_seconds + fabric.intra.latency_seconds +
         bytes / fabric.intra.achieved_bytes_per_second;
}

double network_message_seconds(double bytes, const Fabric& fabric) {
  return kSimple.ring_base_seconds + fabric.inter.latency_seconds +
         bytes / fabric.network_bytes_per_second();
}

/// Every rank sends an equal part to every member; its own part stays. Also one root's gather and
/// scatter.
double all_to_all_seconds(const Path& path, double bytes) {
  const double inside = island_message_seconds((path.per_island - 1) / path.n * bytes, path.fabric);
  if (!path.crosses_network()) return inside;
  const double outside =
      network_message_seconds((path.n - path.per_island) / path.n * bytes, path.fabric);
  return std::max(inside, outside);
}

/// Launch and rendezvous, which the model lacks: 8 x H100, H200 and A100 take 10, 15 and 30 us more
/// than it says at 1 KiB without CUDA graphs; two nodes over EFA, 69 us in all (AWS). Other
/// networks: assumed (Calculon's network latency).
double floor_seconds(const Link& link) {
  if (link.kind == "nvlink" || link.kind == "pcie") return 15e-6;
  return link.kind == "efa" ? 55e-6 : 20e-6;
}

/// Model over (measured - floor), by bytes: between the curves of 8 x H100, H200 and A100, so that
/// predictions lie within 20 % of each from 1 MiB on.
constexpr std::array<CurvePoint, 6> kDerate = {{
    {static_cast<double>(1 * kMiB), 1.00},
    {static_cast<double>(4 * kMiB), 0.90},
    {static_cast<double>(16 * kMiB), 0.75},
    {static_cast<double>(64 * kMiB), 0.85},
    {static_cast<double>(256 * kMiB), 0.93},
    {static_cast<double>(1 * kGiB), 0.98},
}};

double corrected(double model_seconds, int64_t bytes, const Link& slowest_link) {
  return floor_seconds(slowest_link) +
         model_seconds / interpolate_log(kDerate, static_cast<double>(bytes));
}

}  // namespace

double nccl_model_seconds(const CollectiveCall& call,
                          const GroupPlacement& placement,
                          const Fabric& fabric) {
  if (placement.ranks <= 1) return 0;
  const Path path(placement, fabric);
  const auto bytes = static_cast<double>(call.bytes);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBarrier:
      return all_reduce_seconds(path, bytes);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return gather_seconds(path, bytes);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return best_ring_seconds(path, 1, bytes);
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAllToAll:
      return all_to_all_seconds(path, bytes);
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      return path.crosses_network() ? network_message_seconds(bytes, fabric)
                                    : island_message_seconds(bytes, fabric);
  }
  throw std::logic_error("unknown collective");
}

double collective_seconds(const CollectiveCall& call,
                          const RankGroup& group,
                          const Fabric& fabric) {
  const GroupPlacement placement = place(group, fabric);
  if (placement.ranks <= 1) return 0;
  const Link& slowest = placement.islands() > 1 ? fabric.inter : fabric.intra;
  return corrected(nccl_model_seconds(call, placement, fabric), call.bytes, slowest);
}

double send_seconds(int64_t bytes, int64_t from_rank, int64_t to_rank, const Fabric& fabric) {
  const bool near = fabric.same_island(from_rank, to_rank);
  const auto size = static_cast<double>(bytes);
  const double model =
      near ? island_message_seconds(size, fabric) : network_message_seconds(size, fabric);
  return corrected(model, bytes, near ? fabric.intra : fabric.inter);
}

}  // namespace estimator
