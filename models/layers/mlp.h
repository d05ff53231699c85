// The MLP of one layer: plain (two matrices), or gated (SwiGLU, GeGLU: three matrices, of which the
// first two may be stored as one).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "models/layers/feed_forward.h"
#include "models/layers/parallel_linear.h"

namespace models {

/// Who reads the layer's input: it is its norm's output, or one that the router of the experts
/// keeps, too (shared experts).
enum class MlpInput { kOfItsNorm, kOfRouterToo };

class Mlp final : public FeedForward {
 public:
  Mlp(ShardContext& context,
      ParameterStore& store,
      const std::string& name,
      int64_t width,
      MlpInput input = MlpInput::kOfItsNorm);
  at::Tensor forward(at::Tensor input) const override { return finish(begin(std::move(input))); }
  at::Tensor begin(at::Tensor input, const Rest& rest = {}) const override;
  at::Tensor finish(const at::Tensor& begun) const override;
  at::Tensor bias() const override { return second_.bias(); }

 private:
  at::Tensor hidden(at::Tensor input) const;
  at::Tensor separately_gated(const at::Tensor& input) const;

  ShardContext& context_;
  std::string scope_;  ///< the last element of its name: "mlp", or "shared_experts"
  bool sums_apart_;    ///< the sum over tensor ranks is a function of its own
  std::vector<ColumnParallelLinear> first_;  // linear_fc1, or gate and up as two layers
  RowParallelLinear second_;
};

}  // namespace models
