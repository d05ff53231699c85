#pragma once

#include <stdint.h>

/// The interface between the stub of NCCL and the program that hosts it. Find the functions with
/// dlsym.
extern "C" {

/// One collective or message, as it was called. `bytes` is the size as nccl-tests counts it, see
/// estimator::CollectiveCall. Strings live as long as the call of the sink.
struct onerank_nccl_call {
  int communicator;               ///< number of the communicator, from 0 in the order of creation
  const char* communicator_name;  ///< as the caller named it, or ""
  int size;
  int rank;
  const char* kind;   ///< as in estimator::CollectiveKind: "all_reduce"
  const char* dtype;  ///< as c10 names it: "BFloat16"
  uint64_t bytes;
  int peer;                    ///< member index for send, recv and rooted calls, else -1
  void* stream;                ///< the cudaStream_t that it was given
  uint64_t group;              ///< number of the outermost open ncclGroupStart; 0: outside groups
  const void* const* buffers;  ///< device memory that it reads or writes
  int buffer_count;
};

/// From now on `sink` gets every call, on the calling thread and before the values of the call are
/// written, and `answered` is called when they are: what the stub asks of CUDA between the two is
/// no work of the program. `group_size` is called when a communicator that was split off is first
/// used. It returns the size of the group for which the calling thread works, or 0 if it does not
/// know. There is one host at a time; null functions mean none.
void onerank_nccl_set_host(void (*sink)(const struct onerank_nccl_call* call, void* context),
                           void (*answered)(void* context),
                           int (*group_size)(void* context),
                           void* context);

/// For tests. 1: from now on device memory counts as real, so that it holds what is written to it,
/// even if it belongs to the virtual GPU. 0: it counts as real only if there is no virtual GPU.
void onerank_nccl_set_memory_is_real(int is_real);
}
