// Barriers of a program, for which the other ranks do not come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"

namespace sim {

/// A call of a barrier by one of its group's members.
struct BarrierCall {
  std::string group;           ///< c10d's name of the process group, behind that of its backend
  std::string description;     ///< of the group, for the user
  std::vector<int64_t> ranks;  ///< of the world
  int64_t own_rank = 0;        ///< of the world
};

/// If the first rank of the group is run too, waits until it has come to the same barrier: it is
/// the one that prepares what others use. For nobody else is waited. Where it does not come, the
/// folder of the program's processes says so (kPassedBarriers), with the line of Python.
/// Thread-safe.
void pass_barrier(const BarrierCall& call);

/// The same of a call of NCCL, if it is a barrier's. Must be called in the thread of the call.
void pass_if_barrier(const onerank_nccl_call& call);

}  // namespace sim
