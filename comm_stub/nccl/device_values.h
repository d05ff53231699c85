#pragma once

#include "comm_stub/nccl/device_reductions.h"
#include "comm_stub/nccl/nccl_values.h"

namespace nccl {

/// Reduces in place a buffer of at most kLongestReducedBytes in the memory of a real device. In the
/// order of the stream it is copied to the host, reduced, and copied back; the host does not wait.
/// While the stream is being captured, nothing is done.
ncclResult_t reduce_on_host(void* address,
                            const Buffer& buffer,
                            const Reduction& reduction,
                            cudaStream_t stream);

}  // namespace nccl
