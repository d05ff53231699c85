#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "comm_stub/nccl/nccl_types.h"

/// A communicator of which only this rank exists.
struct ncclComm {
  static constexpr uint64_t kMagic = 0x6f6e6572616e6b31;

  uint64_t magic = kMagic;
  int number = 0;
  std::string name;
  std::atomic<int> size = 0;  // 0: split off, size not known yet; NCCL would ask the members
  int rank = 0;
  bool is_finalized = false;
};

namespace nccl {

/// Remembers why the calling thread's last call was refused, for ncclGetLastError.
ncclResult_t refuse(ncclResult_t code, std::string why);
const char* last_refusal();

bool is_valid(ncclComm_t communicator);

/// The size of the communicator. If it was split off from another one, the host program of the stub
/// is asked for it (see nccl_control.h). 0 if it is not known.
int size_of(ncclComm& communicator);

}  // namespace nccl
