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

/// `ranks` equal buffers, reduced: SUM is ranks times the value, PROD its power, the others the
/// value itself. Values that the virtual GPU does not know stay unknown.
ncclResult_t reduce(
    void* destination, const Buffer& source, ncclRedOp_t operation, int ranks, cudaStream_t stream);

}  // namespace nccl
