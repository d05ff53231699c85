// Calls of NCCL that it launches as one (NCCL User Guide, "Group Calls", "Aggregated Operations").
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/trace.h"

namespace sim {

/// The messages of one NCCL group over one communicator, or its collectives of one kind. A call
/// outside of groups is one alone.
class NcclGroup {
 public:
  /// NCCL's number of the group, the communicator's, and what the work is called.
  using Key = std::tuple<uint64_t, int, std::string>;
  static Key key_of(const onerank_nccl_call& call, const estimator::TraceWork& work) {
    return {call.group, call.communicator, work.name};
  }

  NcclGroup() = default;
  /// Its first call, whose work alone is `work`.
  NcclGroup(const onerank_nccl_call& call, estimator::TraceWork work);
  void add(const onerank_nccl_call& call, const estimator::TraceWork& work);

  /// Broadcasts from every rank are how torch gathers tensors of different sizes.
  estimator::TraceWork work() const;

 private:
  estimator::TraceWork work_;
  int ranks_ = 0;        // of the communicator
  std::set<int> roots_;  // of its calls; -1: none
};

/// Of one call.
estimator::TraceWork nccl_work(const onerank_nccl_call& call);

}  // namespace sim
