// NCCL's own tuning tables (data/nccl.json): the constants that its model has for each algorithm,
// protocol, GPU generation and kind of link. They are in microseconds and GB/s, as in NCCL.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"

namespace estimator {

/// To post one operation of the network, on CPUs that are not AMD's (getNetOverhead in tuning.cc).
constexpr double kPostMicroseconds = 1;

/// In NCCL's order: when two times are equal, the first one wins.
enum class NcclAlgorithm { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };
constexpr std::array<EnumName<NcclAlgorithm>, 7> enum_names(NcclAlgorithm) {
  return {{{NcclAlgorithm::kTree, "tree"},
           {NcclAlgorithm::kRing, "ring"},
           {NcclAlgorithm::kCollNetDirect, "collnet_direct"},
           {NcclAlgorithm::kCollNetChain, "collnet_chain"},
           {NcclAlgorithm::kNvls, "nvls"},
           {NcclAlgorithm::kNvlsTree, "nvls_tree"},
           {NcclAlgorithm::kPat, "pat"}}};
}

/// NCCL's protocols: LL and LL128 send a flag with the data, Simple synchronises after each chunk.
enum class NcclProtocol { kLl, kLl128, kSimple };
constexpr std::array<EnumName<NcclProtocol>, 3> enum_names(NcclProtocol) {
  return {{{NcclProtocol::kLl, "ll"},
           {NcclProtocol::kLl128, "ll128"},
           {NcclProtocol::kSimple, "simple"}}};
}

/// Microseconds of each algorithm: a list with one number for each protocol.
struct NcclLatencies {
  std::vector<double> tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat;

  double at(NcclAlgorithm algorithm, NcclProtocol protocol) const;
};
template <class Visitor>
void visit_fields(Visitor& visit, NcclLatencies& row) {
  visit("tree", row.tree, "us");
  visit("ring", row.ring, "us");
  visit("collnet_direct", row.collnet_direct, "us");
  visit("collnet_chain", row.collnet_chain, "us");
  visit("nvls", row.nvls, "us");
  visit("nvls_tree", row.nvls_tree, "us");
  visit("pat", row.pat, "us");
}

/// Highest bandwidths of a GPU generation in GB/s. Lists have three numbers: for one node, for two
/// nodes, and for more.
struct NcclGeneration {
  std::string name;
  int64_t from_compute_capability = 0;  ///< 90: Hopper
  std::vector<double> ll_max;
  std::vector<double> ring_ll128_per_channel;
  std::vector<double> tree_ll128_per_channel;
  std::vector<double> tree_per_channel;
  std::vector<double> nvls_tree_per_channel;
  double nvls_efficiency = 0;
  std::vector<double> channel_speeds_in_node;  ///< that the channel search tries, descending
  std::vector<double> channel_speeds_across;
};
template <class Visitor>
void visit_fields(Visitor& visit, NcclGeneration& row) {
  visit("name", row.name, "generation");
  visit("from_compute_capability", row.from_compute_capability, "first one, times ten");
  visit("ll_max", row.ll_max, "bus bandwidth of LL");
  visit("ring_ll128_per_channel", row.ring_ll128_per_channel, "ring with LL128");
  visit("tree_ll128_per_channel", row.tree_ll128_per_channel, "tree with LL128");
  visit("tree_per_channel", row.tree_per_channel, "tree");
  visit("nvls_tree_per_channel", row.nvls_tree_per_channel, "NVLS tree");
  visit("nvls_efficiency", row.nvls_efficiency, "share of the links that NVLS reaches");
  visit("channel_speeds_in_node", row.channel_speeds_in_node, "tried by the search, one node");
  visit("channel_speeds_across", row.channel_speeds_across, "tried by the search, more nodes");
}

/// Factors for the bandwidth of a tree; the index is floor(log2(bytes / 64)). tuning.cc applies all
/// of them to NVLS trees, but the last one (from 512 MiB on) not to plain trees.
struct NcclTreeCorrection {
  std::vector<double> ll, ll128, simple;

  /// 1 outside the table.
  double at(NcclAlgorithm algorithm, NcclProtocol protocol, int64_t bytes) const;
};
template <class Visitor>
void visit_fields(Visitor& visit, NcclTreeCorrection& row) {
  visit("ll", row.ll, "factor");
  visit("ll128", row.ll128, "factor");
  visit("simple", row.simple, "factor");
}

struct NcclTables {
  std::string source;
  NcclLatencies base_latency;
  NcclLatencies nvlink_latency, pci_latency, network_latency;  ///< of one hop
  NcclTreeCorrection tree_correction;
  std::vector<NcclGeneration> generations;  ///< ascending

  const NcclGeneration& generation(int64_t compute_capability) const;
};
template <class Visitor>
void visit_fields(Visitor& visit, NcclTables& tables) {
  visit("source", tables.source, "where the numbers come from");
  visit("base_latency", tables.base_latency, "before the first hop");
  visit("nvlink_latency", tables.nvlink_latency, "a hop over NVLink");
  visit("pci_latency", tables.pci_latency, "a hop over PCIe");
  visit("network_latency", tables.network_latency, "a hop over a NIC");
  visit("tree_correction", tables.tree_correction, "trees at middle sizes");
  visit("generations", tables.generations, "ceilings of each GPU generation");
}

const NcclTables& nccl_tables();

}  // namespace estimator
