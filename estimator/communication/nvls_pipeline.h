// How NCCL cuts a buffer for NVLS and the NVLS tree (src/transport/nvls.cc, src/enqueue.cc
// @5067397): how many channels and heads work at once, and the bytes that each takes at a time.
#pragma once

#include <cstdint>

#include "estimator/communication/nccl_channels.h"

namespace estimator {

struct NvlsPipeline {
  int64_t channels = 0;
  int64_t chunk_bytes = 0;
  int64_t wave_bytes = 0;  ///< of all channels and heads, at most the call's bytes
};

NvlsPipeline nvls_pipeline(NcclAlgorithm algorithm, const NcclTopology& topology, int64_t bytes);

}  // namespace estimator
