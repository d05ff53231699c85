// One pipeline stage of one rank: its piece of the model, or its model chunks with virtual stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <vector>

#include "models/pipeline/model_chunk.h"
#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

class Stage {
 public:
  explicit Stage(ShardContext& context);

  /// Runs one micro-batch through one chunk; see ModelChunk::forward.
  ChunkOutput forward(int64_t chunk, const at::Tensor& input, const MicroBatchData& data) const;

  const ModelChunk& chunk(int64_t number) const {
    return chunks_.at(static_cast<std::size_t>(number));
  }

  /// See ColumnParallelLinear.
  void compute_deferred_gradients() const { chunks_.back().compute_deferred_gradients(); }

  /// Once in a step: experts that had more tokens than the mean are chosen less.
  void balance_experts() const;
  /// The parameters of all chunks, in their order.
  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  /// The embedding weight that the first and the last stage share, or null.
  Parameter* tied_weight() const;
  /// The FSDP units of a chunk.
  ChunkUnits units(int64_t chunk) const {
    return chunks_.at(static_cast<std::size_t>(chunk)).units();
  }
  /// Shape of the tensor that one piece sends to the next.
  std::vector<int64_t> hidden_shape() const;

 private:
  ShardContext& context_;
  ParameterStore store_;
  std::deque<ModelChunk> chunks_;
};

}  // namespace models
