// The mask of attention in a window of the sequence, for kernels that take a mask alone:
// transformers makes one in each forward of the model, which the layers with a window share
// (create_sliding_window_causal_mask in masking_utils.py of 4.57).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

class WindowMask {
 public:
  explicit WindowMask(const ShardContext& context);

  /// A forward of the model begins: there is a mask. `ones` [b, s] says which tokens are padding;
  /// undefined if nobody does.
  void begin_forward(const at::Tensor& ones);
  /// The forward is over. The mask stays where layers are computed again.
  void end_forward();
  /// [1 or b, 1, s, s] bool, true where a query (row) reads a key (column).
  const at::Tensor& value() const { return value_; }

 private:
  at::Device device_;
  int64_t sequence_, window_;
  bool is_read_again_;
  at::Tensor value_;
};

}  // namespace models
