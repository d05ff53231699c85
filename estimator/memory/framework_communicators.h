// The NCCL communicators that a framework opens in addition to the groups that a plan's shard uses.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace estimator {

struct FrameworkCommunicator {
  GroupKind group = GroupKind::kWorld;
  std::string what_for;
};

struct FrameworkCommunicators {
  /// True for NCCL before 2.22: a communicator connects all its rings and trees when it is created.
  /// Later versions connect only those that are used, at their first use (NCCL_RUNTIME_CONNECT,
  /// NVIDIA/nccl release 2.22.3).
  bool connect_when_made = false;
  /// torch.distributed's send and recv open a communicator for each pair of ranks.
  bool pair_for_each_peer = false;
  /// They do so, and the communicator of the group itself carries no message.
  bool messages_in_pairs = false;
  std::vector<FrameworkCommunicator> others;
};

const FrameworkCommunicators& communicators_of(Framework framework);

}  // namespace estimator
