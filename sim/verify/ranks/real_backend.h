// Wraps a real backend for the verification: each call is recorded as the stub would record it, and
// the memory of the network library is not counted as the shard's.
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

/// A backend for `group` that passes each call first to the sink and then to the real backend. It
/// has the collectives that models::Communicator uses; others throw. Tensors must be on the CPU.
///
/// The real backend gets tensors that do not own their memory, so that none of its threads can keep
/// the shard's memory alive. What must stay alive is held in the same way as in comm_stub: the
/// inputs of an asynchronous call until wait(), its outputs as long as its Work.
///
/// A call that fails throws std::runtime_error whose message begins with the call, the group and
/// its members.
c10::intrusive_ptr<c10d::Backend> record_calls(RealGroup group, estimator::GroupCallSink sink);

}  // namespace sim
