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

/// Copies on the stream; the same address: nothing to do.
ncclResult_t copy(void* destination, const Buffer& source, cudaStream_t stream);

/// `own` in each of `slots` places that lie one behind the other.
ncclResult_t spread(void* destination, const Buffer& own, int slots, cudaStream_t stream);

/// What an absent rank sends: zeros. The virtual GPU's memory is left as it is, of which nothing
/// may be known: who waits for another's flags reads its own.
ncclResult_t receive(void* destination, const Buffer& buffer, cudaStream_t stream);

/// `ranks` equal buffers, reduced (reductions.h). On the virtual GPU, values that it does not know
/// stay unknown; on a real one, large buffers keep the value, and so do all where the factor of an
/// operation is on the device.
ncclResult_t reduce(
    void* destination, const Buffer& source, ncclRedOp_t operation, int ranks, cudaStream_t stream);

}  // namespace nccl
