#include "estimator/communication/communication_time.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "estimator/base/units.h"
#include "estimator/communication/collective_fit.h"
#include "estimator/communication/message_time.h"
#include "estimator/communication/nvls_pipeline.h"
#include "estimator/communication/tree_pipeline.h"

namespace estimator {
namespace {

using enum NcclAlgorithm;

const MeasuredCollective* measured_for(const CollectiveCall& call,
                                       const GroupPlacement& placement,
                                       const Fabric& fabric) {
  const int64_t machines = divide_up(placement.ranks, placement.ranks_per_machine);
  for (const MeasuredCollective& curve : fabric.measured) {
    if (curve.kind == call.kind && curve.ranks == placement.ranks && curve.machines == machines &&
        curve.device == fabric.gpu_cuda_name) {
      return &curve;
    }
  }
  return nullptr;
}

/// The NICs of the whole node that a group can see: EFA's stand behind one device for each GPU.
struct VisibleNics {
  int64_t count = 1;
  double bytes_per_second = 0;
};
VisibleNics visible_nics(const GroupPlacement& placement, const Fabric& fabric) {
  const bool bundled = fabric.inter.kind == "efa" && fabric.nics_per_gpu > 1;
  const double of_each_gpu = bundled ? 1 : fabric.nics_per_gpu;
  const double nics = of_each_gpu * static_cast<double>(placement.ranks_per_domain);
  return {std::max<int64_t>(1, std::llround(std::floor(nics))),
          fabric.inter.nccl_bytes_per_second * (bundled ? fabric.nics_per_gpu : 1)};
}

/// How much less a link moves than a ring is taken to: NCCL counts 12 GB/s for each 100 Gbit/s, and
/// of those 96.3 % are reached (collective_fit.json).
double link_slowdown(const Link& link) {
  constexpr double kShareOfRings = 0.96 * 0.963;
  return std::max(1.0, kShareOfRings * link.nccl_bytes_per_second / link.achieved_bytes_per_second);
}

/// How much longer a group takes beside the other groups on the same NICs than alone.
double nic_slowdown(const GroupPlacement& placement, const Fabric& fabric) {
  const VisibleNics nics = visible_nics(placement, fabric);
  const double believed = static_cast<double>(nics.count) * nics.bytes_per_second;
  const double own = static_cast<double>(placement.ranks_per_domain) * fabric.nics_per_gpu *
                     fabric.inter.nccl_bytes_per_second;
  return std::max(1.0, believed / own);
}

/// How much longer the network takes than NCCL believes: other groups on the same NICs, the spine,
/// and links that move less than their nominal speed.
double network_slowdown(const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.domains() == 1) return 1;
  return nic_slowdown(placement, fabric) * spine_slowdown(placement, fabric) *
         link_slowdown(fabric.inter);
}

/// How much longer the network takes than in a measurement of one group, which had the NICs alone
/// and left no pod.
double slowdown_of_measured(const CollectiveCall& call,
                            const GroupPlacement& placement,
                            const Fabric& fabric) {
  if (placement.domains() == 1) return 1;
  const bool in_pairs = call.kind == CollectiveKind::kAllToAll;
  return nic_slowdown(placement, fabric) * (in_pairs ? spine_slowdown_of_pairs(placement, fabric)
                                                     : spine_slowdown(placement, fabric));
}

/// Where the network is slower than measured, as long as so many more bytes took.
CollectiveTime measured_time(const MeasuredCollective& curve,
                             const CollectiveCall& call,
                             double slowdown) {
  const auto bytes = static_cast<int64_t>(static_cast<double>(call.bytes) * slowdown);
  return {curve.seconds(bytes),
          slowdown == 1 ? Source::kMeasured : Source::kComputed,
          curve.origin,
          std::nullopt};
}

/// Share of the modelled bandwidth that is reached.
double reached_share(const NcclOption& option, int64_t bytes) {
  const CollectiveFit& fit = collective_fit();
  if (option.protocol == NcclProtocol::kLl) return 1;
  if (option.algorithm == kRing) return fit.ring_share.at(bytes);
  if (option.algorithm != kTree) return 1;
  return (option.protocol == NcclProtocol::kLl128 ? fit.tree_ll128_share : fit.tree_simple_share)
      .at(bytes);
}

double chunk_share(int64_t chunk_bytes) {
  return ShareCurve{.source = "", .points = collective_fit().nvls.chunk_share}.at(chunk_bytes);
}

/// Chunks cost bandwidth of the NVLink part only: a slower network hides it.
double nvls_gbps(const NcclOption& option, const NcclTopology& topology, int64_t chunk_bytes) {
  const double share = chunk_share(chunk_bytes);
  if (option.algorithm == kNvls) return option.gbps * share;
  const NcclGeneration& generation = nccl_tables().generation(topology.compute_capability);
  const auto channels = static_cast<double>(option.channels.count);
  const auto n = static_cast<double>(topology.ranks);
  const double bus = 2 * (channels - 1) * option.channels.in_node_gbps * generation.nvls_efficiency;
  return std::min(option.gbps, bus * share * n / (2 * (n - 1)));
}

double nvls_us(const NcclOption& option,
               const NcclTopology& topology,
               int64_t bytes,
               double floor_us,
               double slowdown) {
  const NvlsFit& fit = collective_fit().nvls;
  const NvlsPipeline pipeline = nvls_pipeline(option.algorithm, topology, bytes);
  const double levels = option.algorithm == kNvlsTree
                            ? std::floor(std::log2(static_cast<double>(topology.nodes)))
                            : 0;
  const double waves = fit.waves + fit.waves_per_level * levels;
  const double us_of_byte = slowdown / (1000 * nvls_gbps(option, topology, pipeline.chunk_bytes));
  const double fill =
      waves * static_cast<double>(pipeline.wave_bytes) * slowdown / (1000 * option.gbps);
  return floor_us + option.latency_us + fill + us_of_byte * static_cast<double>(bytes);
}

double option_seconds(const NcclOption& option,
                      const CollectiveCall& call,
                      const NcclTopology& topology,
                      double floor_us,
                      double slowdown) {
  const int64_t bytes = std::max<int64_t>(1, call.bytes);
  if (is_nvls(option.algorithm)) {
    return nvls_us(option, topology, bytes, floor_us, slowdown) * kMicrosecond;
  }
  const NcclBelief belief = nccl_belief(option, call.kind, topology, bytes);
  return (floor_us + belief.latency_us + tree_fill_us(option, topology, bytes, slowdown) +
          belief.transfer_us * slowdown / reached_share(option, bytes)) *
         kMicrosecond;
}

double messages_seconds(const CollectiveCall& call,
                        const GroupPlacement& placement,
                        const Fabric& fabric) {
  if (is_message(call.kind)) return ring_message_seconds(call.bytes, placement, fabric);
  return all_to_all_seconds(call.bytes, placement, fabric);
}

double floor_us(const Link& slowest) { return collective_fit().floor(slowest).microseconds; }

}  // namespace

NcclTopology nccl_topology(const GroupPlacement& placement, const Fabric& fabric) {
  const VisibleNics nics = visible_nics(placement, fabric);
  const bool nvlink = fabric.intra.kind == "nvlink";
  return {.compute_capability = fabric.compute_capability,
          .ranks = placement.ranks,
          .nodes = placement.domains(),
          .nvlink = nvlink,
          .nvls = nvlink && fabric.intra.nvls_bytes_per_second.has_value(),
          .gpu_gbps = fabric.intra.nccl_bytes_per_second / 1e9,
          .nics = nics.count,
          .nic_gbps = nics.bytes_per_second / 1e9,
          .collnet = fabric.sharp,
          .nics_behind_cpu = fabric.nics_behind_cpu,
          .version = fabric.nccl_version,
          .only = fabric.only_algorithm};
}

CollectiveTime collective_time(const CollectiveCall& call,
                               const GroupPlacement& placement,
                               const Fabric& fabric) {
  if (placement.ranks <= 1) return {};
  if (const MeasuredCollective* curve = measured_for(call, placement, fabric)) {
    return measured_time(*curve, call, slowdown_of_measured(call, placement, fabric));
  }
  const double floor = floor_us(placement.domains() > 1 ? fabric.inter : fabric.intra);
  if (!has_nccl_algorithms(call.kind)) {
    return {.seconds = floor * kMicrosecond + messages_seconds(call, placement, fabric)};
  }
  const NcclTopology topology = nccl_topology(placement, fabric);
  const NcclOption option = nccl_choice(call.kind, topology, call.bytes);
  return {
      .seconds = option_seconds(option, call, topology, floor, network_slowdown(placement, fabric)),
      .option = option};
}

int64_t busy_multiprocessors(const CollectiveCall& call,
                             const GroupPlacement& placement,
                             const Fabric& fabric) {
  if (placement.ranks <= 1) return 0;
  const NcclTopology topology = nccl_topology(placement, fabric);
  if (!has_nccl_algorithms(call.kind)) {
    return nccl_channels(NcclPattern::kRing, topology).running();
  }
  const NcclOption option = nccl_choice(call.kind, topology, call.bytes);
  return is_nvls(option.algorithm) ? nvls_pipeline(option.algorithm, topology, call.bytes).channels
                                   : option.channels.running();
}

double collective_seconds(const CollectiveCall& call,
                          const RankGroup& group,
                          const Fabric& fabric) {
  return collective_time(call, place(group, fabric), fabric).seconds;
}

double send_seconds(int64_t bytes, int64_t from_rank, int64_t to_rank, const Fabric& fabric) {
  return send_seconds(bytes, fabric.distance(from_rank, to_rank), fabric);
}

double send_seconds(int64_t bytes, Distance distance, const Fabric& fabric) {
  const Link& link = distance == Distance::kInDomain ? fabric.intra : fabric.inter;
  return floor_us(link) * kMicrosecond + message_seconds(bytes, distance, fabric);
}

}  // namespace estimator
