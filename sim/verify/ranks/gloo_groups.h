// The process groups of one rank of a real world: Gloo over TCP, on CPU tensors.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "sim/verify/ranks/real_backend.h"

namespace c10d {
class Store;
}

namespace sim {

/// How the ranks reach each other.
struct GlooNetwork {
  c10::intrusive_ptr<c10d::Store> store;  ///< where the ranks find each other
  std::string address;                    ///< of this machine, as other machines reach it
  std::chrono::milliseconds timeout;      ///< of one collective
};

/// Makes the group for `rank`. The recorded members are not taken from the layout: each rank sends
/// its number over the new group. Throws std::runtime_error that names the group when not all
/// members can be reached.
RealGroup make_gloo_group(const GlooNetwork& network,
                          const estimator::RankGroup& group,
                          int64_t rank);

using BackendMap = std::map<estimator::GroupKind, c10::intrusive_ptr<c10d::Backend>>;

/// Makes the groups of `kinds` that `rank` shares with another rank; their calls go to `sink`.
/// Every rank of the world must call it, with the same kinds.
BackendMap make_gloo_groups(const GlooNetwork& network,
                            const estimator::ParallelLayout& layout,
                            int64_t rank,
                            const std::vector<estimator::GroupKind>& kinds,
                            const estimator::GroupCallSink& sink);

/// The address of this machine from which it sends to `host`. Throws std::runtime_error when `host`
/// has no address.
std::string local_address_towards(const std::string& host, int port);

}  // namespace sim
