#include "estimator/communication/nccl_channels.h"

#include <algorithm>
#include <cmath>

namespace estimator {
namespace {

constexpr int64_t kMostChannels = 32;   // MAXCHANNELS / 2: channels are doubled later
constexpr int64_t kMostNvlsHeads = 32;  // NCCL_MAX_NVLS_ARITY
constexpr double kRounding = 1e-6;

int64_t whole(double value) { return static_cast<int64_t>(std::floor(value + kRounding)); }

/// Twice as many channels of half the speed, where one SM could not drive a fast one
/// (ncclTopoDupChannels).
NcclChannels doubled(NcclChannels found, int64_t compute_capability) {
  const bool slow = found.in_node_gbps < 25;
  const bool enough = compute_capability > 80 && found.in_node_gbps < 50 && found.count > 4;
  if (slow || enough || 2 * found.count > kMostChannels) return found;
  return {2 * found.count, found.in_node_gbps / 2, found.across_gbps / 2};
}

/// What the other channels leave of a GPU's links. A ring or tree leaves and enters a node through
/// a GPU that then needs no link to the next one; an NVLS head takes its channel twice.
int64_t most_in_node(NcclPattern pattern, const NcclTopology& topology, double speed) {
  const double gpus = topology.ranks_per_node();
  if (pattern == NcclPattern::kNvls) {
    const int64_t heads = std::min<int64_t>(kMostNvlsHeads, whole(gpus));
    return std::min(heads, whole(topology.gpu_gbps / speed) - 1);
  }
  if (gpus <= 1) return kMostChannels;
  const double share = topology.nodes > 1 ? gpus / (gpus - 1) : 1;
  return whole(topology.gpu_gbps * share / speed);
}

int64_t most_channels(NcclPattern pattern, const NcclTopology& topology, double speed) {
  int64_t most = std::min(kMostChannels, most_in_node(pattern, topology, speed));
  if (topology.nodes > 1) {
    most = std::min(most, topology.nics * whole(topology.nic_gbps / speed));
  } else if (pattern == NcclPattern::kNvls &&
             most < std::min<int64_t>(kMostNvlsHeads, topology.ranks)) {
    return 0;  // on one node every GPU must be a head
  }
  return most;
}

/// Whether the search keeps a graph (ncclTopoCompareGraphs): it moves more, or has more NVLS heads.
bool is_better(NcclPattern pattern, int64_t count, double speed, const NcclChannels& best) {
  if (pattern == NcclPattern::kNvls && count > best.count) return true;
  return static_cast<double>(count) * speed > static_cast<double>(best.count) * best.across_gbps;
}

/// The last of the channel speeds that is better than those before it.
NcclChannels fastest(NcclPattern pattern,
                     const NcclTopology& topology,
                     const std::vector<double>& speeds) {
  NcclChannels best;
  for (const double speed : speeds) {
    if (best.count > 0 && speed / best.across_gbps <= 0.49) break;
    const int64_t count = most_channels(pattern, topology, speed);
    if (count > 0 && is_better(pattern, count, speed, best)) best = {count, speed, speed};
    if (best.count > 0 && static_cast<double>(count) * speed >= topology.gpu_gbps) break;
  }
  return best;
}

/// The second pass: a tree may be faster inside its nodes, an NVLS tree faster between them, up to
/// twice the other.
void raise(NcclChannels& found,
           NcclPattern pattern,
           const NcclTopology& topology,
           const std::vector<double>& speeds) {
  const double gpus = topology.ranks_per_node();
  const double links = gpus > 1 ? topology.gpu_gbps * gpus / (gpus - 1) : 1e9;
  for (auto speed = speeds.rbegin(); speed != speeds.rend(); ++speed) {
    if (pattern == NcclPattern::kNvls) {
      const bool fits = *speed <= topology.nic_gbps &&
                        found.count <= topology.nics * whole(topology.nic_gbps / *speed);
      if (*speed > found.across_gbps && fits && found.across_gbps < 2 * found.in_node_gbps) {
        found.across_gbps = *speed;
      }
    } else if (*speed > found.in_node_gbps && found.in_node_gbps < 2 * found.across_gbps &&
               *speed * static_cast<double>(found.count) <= links) {
      found.in_node_gbps = *speed;
    }
  }
}

}  // namespace

NcclChannels nccl_channels(NcclPattern pattern, const NcclTopology& topology) {
  constexpr int64_t kFirstWithNvls = 90;
  if (pattern == NcclPattern::kNvls &&
      (!topology.nvls || topology.compute_capability < kFirstWithNvls ||
       topology.ranks_per_node() <= 2)) {
    return {};
  }
  const NcclGeneration& generation = nccl_tables().generation(topology.compute_capability);
  const std::vector<double>& speeds =
      topology.nodes > 1 ? generation.channel_speeds_across : generation.channel_speeds_in_node;
  NcclChannels found = fastest(pattern, topology, speeds);
  if (pattern != NcclPattern::kNvls) found = doubled(found, topology.compute_capability);
  if (topology.nodes > 1 && pattern != NcclPattern::kRing) raise(found, pattern, topology, speeds);
  return found;
}

}  // namespace estimator
