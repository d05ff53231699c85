// How NCCL divides a buffer for NVLS and the NVLS tree (src/transport/nvls.cc, src/enqueue.cc
// @5067397): how many channels and heads work at the same time, and how many bytes each moves in
// one chunk.
#pragma once

#include <cstdint>

#include "estimator/communication/nccl_channels.h"

namespace estimator {

struct NvlsPipeline {
  int64_t channels = 0;
  int64_t chunk_bytes = 0;
  int64_t wave_bytes = 0;  ///< a chunk of all channels and heads; at most the call's bytes
};

NvlsPipeline nvls_pipeline(NcclAlgorithm algorithm, const NcclTopology& topology, int64_t bytes);

}  // namespace estimator
