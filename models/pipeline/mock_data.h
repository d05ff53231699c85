// Mock tokens: the same for a given seed, iteration and sample, whatever the layout.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

struct MicroBatchData {
  at::Tensor tokens;  ///< [s/c, b] int64 on the device; undefined except on the first stage
  at::Tensor labels;  ///< [s/c, b] int64 on the device; undefined except on the last stage
  at::Tensor mask;    ///< [b, 1, s/c, s] bool, true where a key lies in the future; where asked for
};

/// Samples are numbered over the whole step: data rank d's micro-batch m holds samples
/// (m * data ranks + d) * micro_batch_size and on, as Megatron-LM deals them out. Of each, context
/// rank c gets its own chunks.
MicroBatchData mock_micro_batch(const ShardContext& context,
                                int64_t iteration,
                                int64_t micro_batch);

}  // namespace models
