#pragma once

#include "comm_stub/nccl/reductions.h"
#include "comm_stub/nccl/values.h"

namespace nccl {

/// Reduces a buffer of at most kLongestReducedBytes where it lies, in memory of a real device: when
/// the stream gets there, it is copied to the host, reduced, and copied back. The host does not
/// wait. While the stream is captured nothing is done.
ncclResult_t reduce_on_host(void* address,
                            const Buffer& buffer,
                            const Reduction& reduction,
                            cudaStream_t stream);

}  // namespace nccl
