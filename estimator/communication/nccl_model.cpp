#include "estimator/communication/nccl_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace estimator {
namespace {

using enum NcclAlgorithm;
using enum NcclProtocol;

bool is_all_reduce(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBarrier;
}
bool is_gather_or_scatter(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}
bool is_collnet(NcclAlgorithm algorithm) {
  return algorithm == kCollNetDirect || algorithm == kCollNetChain;
}

/// A kind on a topology, in the words of tuning.cc.
struct Tuning {
  CollectiveKind kind;
  const NcclTopology& topology;
  const NcclGeneration& generation;
  double n, nodes, per_node, steps;
  std::size_t column;  ///< of the ceilings: one node, two, more

  Tuning(CollectiveKind kind_in, const NcclTopology& topology_in)
      : kind(kind_in),
        topology(topology_in),
        generation(nccl_tables().generation(topology_in.compute_capability)),
        n(static_cast<double>(topology_in.ranks)),
        nodes(static_cast<double>(topology_in.nodes)),
        per_node(topology_in.ranks_per_node()),
        steps(is_all_reduce(kind)          ? 2 * (n - 1)
              : is_gather_or_scatter(kind) ? n - 1
                                           : n),
        column(static_cast<std::size_t>(std::min<int64_t>(topology_in.nodes, 3) - 1)) {}

  bool one_node() const { return topology.nodes == 1; }
  /// The search tries a ring again from the next NIC, as it is; only where that NIC is another
  /// GPU's it looks for a different one (search.cc, sameChannels).
  bool same_channels() const {
    return one_node() || topology.nics == 1 || topology.ranks == topology.nodes;
  }
  const NcclLatencies& in_node_latency() const {
    return topology.nvlink ? nccl_tables().nvlink_latency : nccl_tables().pci_latency;
  }
  /// By GPU on one node, by CPU on more: the first row is that of CPUs that are not AMD's.
  double ll_ceiling() const {
    const NcclGeneration& row = one_node() ? generation : nccl_tables().generations.front();
    return row.ll_max.at(column);
  }
};

/// On NVLink, and over NICs behind a CPU since NCCL_LL128_C2C.
bool ll128_is_safe(const Tuning& t) {
  constexpr int64_t kFirstOverC2c = 22703;
  if (!t.topology.nvlink || t.topology.compute_capability < 70) return false;
  return t.one_node() || !t.topology.nics_behind_cpu || t.topology.version >= kFirstOverC2c;
}

bool can_run(const Tuning& t, NcclAlgorithm algorithm, NcclProtocol protocol) {
  constexpr int64_t kMostCollNetRanks = 8;  // NCCL_MAX_DIRECT_ARITY + 1
  constexpr int64_t kMostNvlsRanks = 32;    // NCCL_MAX_NVLS_ARITY; an all-reduce may have more
  if (protocol == kLl128 && !ll128_is_safe(t)) return false;
  switch (algorithm) {
    case kRing:
      return true;
    case kTree:
      return is_all_reduce(t.kind);
    case kCollNetDirect:
      return t.topology.collnet && !t.one_node() && t.topology.nvls && protocol == kSimple &&
             t.per_node <= kMostCollNetRanks && is_all_reduce(t.kind);
    case kCollNetChain:
      return t.topology.collnet && !t.one_node() && protocol == kSimple &&
             t.per_node <= kMostCollNetRanks && is_all_reduce(t.kind);
    case kNvls:
      return protocol == kSimple && (t.one_node() || t.topology.collnet) &&
             (is_all_reduce(t.kind) ||
              (is_gather_or_scatter(t.kind) && t.one_node() && t.per_node <= kMostNvlsRanks));
    case kNvlsTree:
      return protocol == kSimple && !t.one_node() && is_all_reduce(t.kind);
    case kPat:
      return protocol == kSimple && is_gather_or_scatter(t.kind) && t.topology.ranks > 1 &&
             t.topology.ranks == t.topology.nodes;
  }
  throw std::logic_error("unknown algorithm");
}

double nvls_channel_gbps(const Tuning& t, NcclAlgorithm algorithm, const NcclChannels& channels) {
  const auto count = static_cast<double>(channels.count);
  const double in_node = channels.in_node_gbps * t.generation.nvls_efficiency * (count - 1) /
                         count * (is_all_reduce(t.kind) ? 2 : (t.per_node - 1) / t.per_node);
  if (t.one_node()) return in_node;
  const bool both_ways = algorithm == kNvlsTree && t.topology.nodes == 2;
  const double across = channels.across_gbps * (both_ways ? 2 : 1);
  const double ceiling = algorithm == kNvlsTree ? t.generation.nvls_tree_per_channel.at(t.column)
                                                : std::numeric_limits<double>::infinity();
  return std::min({in_node, across, ceiling});
}

double ring_gbps(const Tuning& t, NcclProtocol protocol, double bus, double count) {
  if (protocol == kLl) return std::min(t.ll_ceiling(), bus * 0.5);
  if (protocol == kLl128) {
    return std::min(bus * 0.92, count * t.generation.ring_ll128_per_channel.at(t.column));
  }
  return bus;
}

double tree_gbps(const Tuning& t, NcclProtocol protocol, double bus, double count) {
  bus = std::min(bus * 0.92, count * t.generation.tree_per_channel.at(t.column));
  if (protocol == kLl) bus = std::min(bus / 3.8, t.ll_ceiling());
  if (protocol == kLl128) {
    bus = std::min(bus * (t.one_node() ? 7.0 / 9 : 120.0 / 128),
                   count * t.generation.tree_ll128_per_channel.at(t.column));
  }
  return t.topology.ranks == t.topology.nodes ? bus * 0.85 : bus;  // a plain tree pattern
}

double collnet_direct_gbps(const Tuning& t, double bus, double count) {
  const double gpus_per_nic = t.per_node / count;
  bus /= gpus_per_nic - (gpus_per_nic - 1) / 2;
  return t.topology.compute_capability >= 90 ? bus * 0.85 : bus;
}

/// Bytes of the call over its time, GB/s.
double algorithm_gbps(const Tuning& t, const NcclOption& option) {
  const auto count = static_cast<double>(option.channels.count);
  const bool in_node_counts = t.topology.nodes <= 2 || is_collnet(option.algorithm);
  const double speed = is_nvls(option.algorithm)
                           ? nvls_channel_gbps(t, option.algorithm, option.channels)
                       : in_node_counts ? option.channels.in_node_gbps
                                        : option.channels.across_gbps;
  double bus = count * speed;
  switch (option.algorithm) {
    case kRing:
      return ring_gbps(t, option.protocol, bus, count) * t.n / t.steps;
    case kTree:
      return tree_gbps(t, option.protocol, bus, count) * 0.5;
    case kNvls:
    case kNvlsTree:
      return is_gather_or_scatter(t.kind) ? bus : bus * t.n / t.steps;
    case kCollNetDirect:
      return collnet_direct_gbps(t, bus, count) * 0.5;
    case kCollNetChain:
      return bus * 0.5;
    case kPat:
      return bus * 0.75;
  }
  throw std::logic_error("unknown algorithm");
}

/// Where channels differ a chunk waits at every rank, for as long as on the network.
double rooted_ring_latency_us(const Tuning& t, NcclProtocol protocol) {
  const NcclLatencies& hop = t.one_node() ? t.in_node_latency() : nccl_tables().network_latency;
  if (t.same_channels()) return hop.at(kRing, protocol);
  return t.steps * hop.at(protocol == kSimple ? kTree : kRing, protocol);
}

double ring_latency_us(const Tuning& t, NcclProtocol protocol, double in_node, double across) {
  if (!is_all_reduce(t.kind) && !is_gather_or_scatter(t.kind)) {
    return rooted_ring_latency_us(t, protocol);
  }
  double post = 0;  // of one network operation, which every step waits for
  if (!t.one_node()) post = kPostMicroseconds * (protocol == kSimple ? 3 : 1);
  const double network_steps = t.one_node() ? 0 : (t.nodes - 1) * (is_all_reduce(t.kind) ? 2 : 1);
  return (t.steps - network_steps) * std::max(in_node, post) + network_steps * across;
}

double latency_us(const Tuning& t, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const NcclTables& tables = nccl_tables();
  const double base = tables.base_latency.at(algorithm, protocol);
  const double in_node = t.in_node_latency().at(algorithm, protocol);
  const bool alone = t.topology.ranks == t.topology.nodes;
  const double across = tables.network_latency.at(alone ? kTree : algorithm, protocol);
  const double levels = std::floor(std::log2(t.nodes));
  const double others = std::floor(t.per_node) - 1;
  switch (algorithm) {
    case kRing:
      return base + ring_latency_us(t, protocol, in_node, across);
    case kTree:
      return base + 2 * (others * in_node + levels * across);
    case kCollNetDirect:
      return base + 2 * (std::min(1.0, others) * in_node + others * 0.4) + across;
    case kCollNetChain:
      return base + 2 * others * in_node + across;
    case kNvls:
      return in_node + (t.one_node() ? 0 : across);
    case kNvlsTree:
      return base + in_node + 2 * levels * across;
    case kPat:
      return base + levels * across / 3.5 + t.n * 2.8;
  }
  throw std::logic_error("unknown algorithm");
}

NcclPattern pattern_of(NcclAlgorithm algorithm) {
  if (is_nvls(algorithm)) return NcclPattern::kNvls;
  return algorithm == kTree || is_collnet(algorithm) ? NcclPattern::kTree : NcclPattern::kRing;
}

}  // namespace

bool has_nccl_algorithms(CollectiveKind kind) {
  return is_all_reduce(kind) || is_gather_or_scatter(kind) || kind == CollectiveKind::kBroadcast ||
         kind == CollectiveKind::kReduce;
}

bool is_nvls(NcclAlgorithm algorithm) { return algorithm == kNvls || algorithm == kNvlsTree; }

std::vector<NcclOption> nccl_options(CollectiveKind kind, const NcclTopology& topology) {
  const Tuning tuning(kind, topology);
  std::vector<NcclOption> options;
  for (const auto& [algorithm, algorithm_name] : enum_names(NcclAlgorithm{})) {
    if (topology.only.value_or(algorithm) != algorithm) continue;
    if (!can_run(tuning, algorithm, kSimple)) continue;
    const NcclChannels channels = nccl_channels(pattern_of(algorithm), topology);
    const int64_t fewest = is_nvls(algorithm) ? 2 : 1;
    if (channels.count < fewest) continue;
    for (const auto& [protocol, protocol_name] : enum_names(NcclProtocol{})) {
      if (!can_run(tuning, algorithm, protocol)) continue;
      NcclOption option{algorithm, protocol, channels};
      option.gbps = algorithm_gbps(tuning, option);
      option.latency_us = latency_us(tuning, algorithm, protocol);
      if (option.gbps > 0) options.push_back(option);
    }
  }
  return options;
}

NcclBelief nccl_belief(const NcclOption& option,
                       CollectiveKind kind,
                       const NcclTopology& topology,
                       int64_t bytes) {
  double gbps = option.gbps;
  double latency = option.latency_us;
  const bool blackwell_nvls_tree =
      option.algorithm == kNvlsTree && topology.compute_capability >= 100;
  if (is_all_reduce(kind) && (option.algorithm == kTree || blackwell_nvls_tree)) {
    gbps *= nccl_tables().tree_correction.at(option.algorithm, option.protocol, bytes);
  }
  const int64_t channels = option.channels.running();
  if (option.algorithm == kRing && option.protocol == kSimple && topology.nodes > 1 &&
      is_all_reduce(kind) && bytes / (channels * topology.ranks) >= 64) {
    latency *= topology.compute_capability < 80 ? 1.9 : 1.4;
  }
  return {latency, static_cast<double>(bytes) / (1000 * gbps)};
}

NcclOption nccl_choice(CollectiveKind kind, const NcclTopology& topology, int64_t bytes) {
  if (!has_nccl_algorithms(kind)) throw std::logic_error("NCCL has no algorithm for this call");
  NcclOption best;
  double best_us = std::numeric_limits<double>::infinity();
  for (const NcclOption& option : nccl_options(kind, topology)) {
    const double us = nccl_belief(option, kind, topology, bytes).us();
    if (us < best_us) {
      best = option;
      best_us = us;
    }
  }
  if (!std::isfinite(best_us)) throw std::logic_error("NCCL's model has no option for a call");
  return best;
}

}  // namespace estimator
