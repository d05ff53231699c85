// Mock tokens. They depend only on the seed, the iteration and the sample, not on the layout.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

struct MicroBatchData {
  at::Tensor tokens;  ///< [s/c, b] int64 on the device; undefined except on the first stage, and
                      ///< on the last one where it predicts more tokens
  at::Tensor labels;  ///< [s/c, b] int64 on the device; undefined except on the last stage
  at::Tensor
      mask;  ///< [b, 1, s/c, s] bool, true where a key lies in the future; undefined if not wanted
  at::Tensor ones;  ///< [b, s] int64, the attention mask of samples without padding; the same
};

/// The tokens of one micro-batch. Samples are numbered over the whole step, as in Megatron-LM:
/// micro-batch m of data rank d holds micro_batch_size samples, the first of which is sample (m *
/// data ranks + d) * micro_batch_size. Each context rank gets its own chunks of each sample.
MicroBatchData mock_micro_batch(const ShardContext& context,
                                int64_t iteration,
                                int64_t micro_batch);

}  // namespace models
