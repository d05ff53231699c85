#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "comm_stub/nccl/nccl_types.h"

/// A communicator of which only this rank is there.
struct ncclComm {
  static constexpr uint64_t kMagic = 0x6f6e6572616e6b31;

  uint64_t magic = kMagic;
  int number = 0;
  std::string name;
  std::atomic<int> size = 0;  // 0: a part whose other members NCCL would have asked
  int rank = 0;
  bool is_finalized = false;
};

namespace nccl {

/// Remembers why the calling thread's last call was refused, for ncclGetLastError.
ncclResult_t refuse(ncclResult_t code, std::string why);
const char* last_refusal();

bool is_valid(ncclComm_t communicator);

/// The size, also of a part that was split off: then who hosts the stub is asked (see
/// nccl_control.h). 0 if nobody knows.
int size_of(ncclComm& communicator);

}  // namespace nccl
