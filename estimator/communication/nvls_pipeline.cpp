#include "estimator/communication/nvls_pipeline.h"

#include <algorithm>
#include <span>

#include "estimator/base/units.h"

namespace estimator {
namespace {

struct NvlsTuning {
  int64_t channels = 16;
  int64_t largest_chunk = 128 * kKiB;
  int64_t largest_tree_chunk = 128 * kKiB;
};

constexpr int64_t kFromBlackwell = 100;

/// Before there was a tuning for Blackwell (2.30.3), and on Hopper.
NvlsTuning plain_tuning(const NcclTopology& topology) {
  constexpr int64_t kFewerInOneNode = 22703;
  NvlsTuning tuning;
  if (topology.compute_capability >= kFromBlackwell) {
    tuning.channels = topology.nodes == 1 && topology.version >= kFewerInOneNode ? 24 : 32;
  }
  if (topology.nodes >= 4) tuning.largest_tree_chunk = 64 * kKiB;
  return tuning;
}

/// ncclNvlsTuning and ncclNvlsTreeSm100Tuning.
NvlsTuning tuning_of(const NcclTopology& topology) {
  constexpr int64_t kFirstTunedForBlackwell = 23003;
  constexpr double kNdr = 48, kXdr = 96;  // GB/s of a NIC
  if (topology.compute_capability < kFromBlackwell || topology.nodes == 1 ||
      topology.version < kFirstTunedForBlackwell) {
    return plain_tuning(topology);
  }
  const bool switched = !topology.nics_behind_cpu;  // PATH_PXB or closer
  const double gpus = topology.ranks_per_node();
  if (topology.nodes == 2 && topology.nic_gbps >= kNdr) {
    if (gpus <= 4) return {32, 256 * kKiB, 256 * kKiB};
    const bool small = gpus >= 16 || (gpus <= 8 && switched && topology.nic_gbps < kXdr);
    return {32, 128 * kKiB, (small ? 64 : 128) * kKiB};
  }
  if (topology.nic_gbps >= kXdr) {
    if (gpus <= 8) return {24, 256 * kKiB, 256 * kKiB};
    return {32, 128 * kKiB, (gpus < 32 ? 128 : 64) * kKiB};
  }
  if (topology.nic_gbps >= kNdr) return {24, 128 * kKiB, (switched ? 64 : 128) * kKiB};
  return {32, 128 * kKiB, (topology.nodes >= 4 ? 64 : 128) * kKiB};
}

/// A buffer of fewer than `waves` of the present chunk gets chunks of at most `chunk_bytes`.
struct ChunkRule {
  int64_t waves;
  int64_t chunk_bytes;
};
constexpr ChunkRule kNvlsRules[] = {{64, 64 * kKiB}, {8, 32 * kKiB}, {2, 16 * kKiB}};
constexpr ChunkRule kTreeRules[] = {
    {32, 256 * kKiB}, {16, 128 * kKiB}, {4, 64 * kKiB}, {1, 32 * kKiB}};

}  // namespace

NvlsPipeline nvls_pipeline(NcclAlgorithm algorithm, const NcclTopology& topology, int64_t bytes) {
  constexpr int64_t kMostHeads = 32;  // NCCL_MAX_NVLS_ARITY
  const bool tree = algorithm == NcclAlgorithm::kNvlsTree;
  const NvlsTuning tuning = tuning_of(topology);
  const auto heads = std::min(kMostHeads, static_cast<int64_t>(topology.ranks_per_node()));
  const int64_t at_once = tuning.channels * heads;
  int64_t chunk =
      tree ? std::min(tuning.largest_chunk, tuning.largest_tree_chunk) : tuning.largest_chunk;
  const auto rules = tree ? std::span<const ChunkRule>(kTreeRules) : kNvlsRules;
  for (const ChunkRule& rule : rules) {
    if (bytes < rule.waves * at_once * chunk) chunk = std::min(chunk, rule.chunk_bytes);
  }
  return {tuning.channels, chunk, std::min(bytes, at_once * chunk)};
}

}  // namespace estimator
