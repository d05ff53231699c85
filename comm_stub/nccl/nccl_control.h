#pragma once

#include <stdint.h>

/// How the program that hosts the stubbed NCCL reads it; find the function with dlsym.
extern "C" {

/// One collective or message, as it was called. `bytes` is nccl-tests' size, as
/// estimator::CollectiveCall has it. Strings live as long as the call.
struct onerank_nccl_call {
  int communicator;               ///< number of the communicator, from 0 in the order of creation
  const char* communicator_name;  ///< as the caller named it, or ""
  int size;
  int rank;
  const char* kind;   ///< as in estimator::CollectiveKind: "all_reduce"
  const char* dtype;  ///< as c10 names it: "BFloat16"
  uint64_t bytes;
  int peer;                    ///< member for send, recv and rooted calls, else -1
  const void* const* buffers;  ///< device memory that it reads or writes
  int buffer_count;
};

/// From now on `sink` gets every call, on the calling thread and before its values are written, and
/// `group_size` is asked for the size of a communicator that was split off, when it is first used:
/// it answers for the group that the calling thread works for, 0 if it does not know. One host at a
/// time; null functions: nobody.
void onerank_nccl_set_host(void (*sink)(const struct onerank_nccl_call* call, void* context),
                           int (*group_size)(void* context),
                           void* context);

/// 1: from now on device memory is taken to hold what is written to it, also where the virtual GPU
/// is there, which then plays a real one in a test. 0: only where it is not there.
void onerank_nccl_set_memory_is_real(int is_real);
}
