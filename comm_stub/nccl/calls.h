#pragma once

#include <cstdint>
#include <vector>

#include "comm_stub/nccl/data_types.h"
#include "comm_stub/nccl/nccl_communicator.h"

namespace nccl {

/// The size of the group for which the calling thread works. The host program of the stub is asked
/// for it (see nccl_control.h); 0 if there is none.
int ask_group_size();

/// One call that passed its checks, as it is reported to the host program (see nccl_control.h).
struct Call {
  const char* kind;
  ncclComm& communicator;
  const DataType& type;
  uint64_t bytes;
  int peer = -1;
  void* stream = nullptr;
  const std::vector<const void*>& buffers;
};
void record(const Call& call);
/// The values of the call of this thread that was recorded last are written.
void answered();

/// The calls of a thread from its outermost open group are one operation of NCCL. Groups are
/// numbered, for the host program.
void open_group();
/// False if no group is open.
bool close_group();

}  // namespace nccl
