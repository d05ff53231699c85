// A real backend as the shard and the verification need it: each call is recorded as the stub would
// record it, and the network's own memory is kept out of the shard's.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <vector>

#include "estimator/profile/run_record.h"

namespace c10d {
class Backend;  // its header takes 7 s to compile
}

namespace sim {

/// A group of real ranks.
struct RealGroup {
  estimator::GroupKind kind = estimator::GroupKind::kWorld;
  std::vector<int64_t> members;  ///< global ranks, in the order of the group
  c10::intrusive_ptr<c10d::Backend> backend;
};

/// `group`, whose calls go to the sink before they go out. Has the collectives of
/// models::Communicator; others throw. Tensors are on the CPU.
///
/// The backend inside gets tensors that own no memory, so that none of its threads can keep the
/// shard's memory alive. What must stay alive is held as comm_stub holds it: an asynchronous call's
/// inputs until wait(), its outputs as long as its Work.
///
/// A call that fails throws std::runtime_error whose message opens with the call, the group and its
/// members.
c10::intrusive_ptr<c10d::Backend> record_calls(RealGroup group, estimator::GroupCallSink sink);

}  // namespace sim
