// One pre-norm transformer layer: x + attention(norm(x)), then x + mlp(norm(x)), where the mlp may
// be a mixture of experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "models/attention.h"
#include "models/feed_forward.h"
#include "models/norm.h"
#include "models/token_dispatcher.h"

namespace models {

/// What the layers of all chunks share.
struct SharedParts {
  std::shared_ptr<const CoreAttention> core;
  std::shared_ptr<const RotaryEmbedding> rotary;      ///< null without rotary positions
  std::shared_ptr<const TokenDispatcher> dispatcher;  ///< null without experts
};

class TransformerLayer {
 public:
  /// `number` counts layers of the whole model from 0.
  TransformerLayer(ShardContext& context,
                   ParameterStore& store,
                   int64_t number,
                   const SharedParts& shared);

  /// [s or s/t, b, h] -> the same. Under full recompute only the input is kept.
  at::Tensor forward(const at::Tensor& input) const;

 private:
  at::Tensor compute(const at::Tensor& input) const;

  ShardContext& context_;
  std::string name_;
  Norm attention_norm_;
  std::unique_ptr<const Attention> attention_;
  Norm mlp_norm_;
  std::unique_ptr<const FeedForward> mlp_;
};

}  // namespace models
