#pragma once

#include <cstdint>
#include <vector>

#include "comm_stub/nccl/communicator.h"
#include "comm_stub/nccl/data_types.h"

namespace nccl {

/// The size of the group that the calling thread is working for, as the host of the stub says; 0 if
/// there is nobody to ask.
int ask_group_size();

/// One call that passed its checks, for who listens (see nccl_control.h).
struct Call {
  const char* kind;
  ncclComm& communicator;
  const DataType& type;
  uint64_t bytes;
  int peer = -1;
  const std::vector<const void*>& buffers;
};
void record(const Call& call);

}  // namespace nccl
