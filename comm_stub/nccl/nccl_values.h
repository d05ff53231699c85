#pragma once

#include <cstddef>

#include "comm_stub/nccl/data_types.h"

namespace nccl {

/// `elements` values of one type in device memory.
struct Buffer {
  const void* address;
  size_t elements;
  const DataType& type;

  size_t bytes() const { return elements * type.bytes; }
};

/// Copies in the order of the stream. Does nothing if source and destination are the same.
ncclResult_t copy(void* destination, const Buffer& source, cudaStream_t stream);

/// Copies `own` into each of `slots` places that lie one after the other.
ncclResult_t spread(void* destination, const Buffer& own, int slots, cudaStream_t stream);

/// Receives from an absent rank, which sends zeros. The memory of the virtual GPU is left
/// unchanged: a rank that waits for flags of another one then reads its own.
ncclResult_t receive(void* destination, const Buffer& buffer, cudaStream_t stream);

/// Reduces `ranks` equal buffers (reductions.h). On the virtual GPU unknown values stay unknown. On
/// a real GPU large buffers keep their values, and so do all buffers if the factor of the operation
/// is on the device.
ncclResult_t reduce(
    void* destination, const Buffer& source, ncclRedOp_t operation, int ranks, cudaStream_t stream);

}  // namespace nccl
