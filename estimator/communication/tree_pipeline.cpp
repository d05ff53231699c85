#include "estimator/communication/tree_pipeline.h"

#include <algorithm>
#include <cmath>

#include "estimator/base/units.h"

namespace estimator {

double tree_fill_us(const NcclOption& option,
                    const NcclTopology& topology,
                    int64_t bytes,
                    double network_slowdown) {
  if (option.algorithm != NcclAlgorithm::kTree || option.protocol != NcclProtocol::kSimple) {
    return 0;
  }
  constexpr int64_t kChunkBytes = 512 * kKiB;  // NCCL_BUFFSIZE / NCCL_STEPS
  const int64_t part = divide_up(bytes, option.channels.running());
  const auto chunk = static_cast<double>(std::min(kChunkBytes, part));
  const double in_node = 2 * (std::floor(topology.ranks_per_node()) - 1);
  const double across = 2 * std::floor(std::log2(static_cast<double>(topology.nodes)));
  return chunk / 1000 *
         (in_node / (option.channels.in_node_gbps / 2) +
          across * network_slowdown / (option.channels.across_gbps / 2));
}

}  // namespace estimator
