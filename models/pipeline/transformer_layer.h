// One transformer layer: x + attention(norm(x)), then x + mlp(norm(x)), where the mlp may be a
// mixture of experts, and norms may also, or only, be of what attention and mlp give. Or in
// parallel x + attention(norm(x)) + mlp(norm'(x)), where each tensor rank adds its parts of
// attention and MLP, with their biases and dropout, and one sum over the ranks follows.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "estimator/plan/frameworks.h"
#include "models/attention/attention.h"
#include "models/experts/token_dispatcher.h"
#include "models/layers/dropout.h"
#include "models/layers/feed_forward.h"
#include "models/layers/norm.h"
#include "models/layers/recompute.h"

namespace models {

/// Objects that the layers of all chunks share, or in some frameworks those of one chunk.
struct SharedParts {
  std::shared_ptr<const CoreAttention> core;
  std::shared_ptr<const CoreAttention> core_in_window;      ///< null where no layer has a window
  std::shared_ptr<WindowMask> window;                       ///< its mask, if it reads one
  std::shared_ptr<const RotaryEmbedding> rotary;            ///< null without rotary positions
  std::shared_ptr<const RotaryEmbedding> rotary_in_window;  ///< null if it is the same
  std::shared_ptr<const TokenDispatcher> dispatcher;        ///< null without Megatron-LM's experts
};

using estimator::LayerNumber;

/// How the plan checkpoints a layer that it recomputes.
CheckpointOptions layer_checkpoint(const ShardContext& context);

/// What runs while the parameters of an FSDP unit are gathered, and who has them gathered.
using UnitBody = std::function<at::Tensor(const at::Tensor&)>;
using UnitRunner = std::function<at::Tensor(const at::Tensor&, const UnitBody&)>;

class TransformerLayer {
 public:
  /// `name` is its path, as that of its parameters.
  TransformerLayer(ShardContext& context,
                   ParameterStore& store,
                   std::string name,
                   const LayerNumber& number,
                   const SharedParts& shared);

  /// [s or s/t, b, h] -> the same shape. A recomputed layer keeps only its input and, if it is
  /// recomputed by operator, the outputs of the listed operators. With `unit` it runs in this unit,
  /// and so does what is recomputed.
  at::Tensor forward(const at::Tensor& input, const UnitRunner& unit = {}) const;

  /// For a layer inside of another module: forward() without scope and checkpoint, and whether it
  /// would be a checkpoint.
  at::Tensor compute(const at::Tensor& input) const;
  bool is_checkpoint() const;
  /// Of its experts, or null.
  const ExpertBalance* balance() const { return mlp_->balance(); }

  /// For layer_pieces.h, like compute(): the two halves of a layer, x + attention(norm(x)) and x +
  /// mlp(norm(x)), and the second half of a layer of experts in steps (see ExpertMlp).
  const std::string& name() const { return name_; }
  bool is_of_experts() const { return has_experts_; }
  at::Tensor attend(const at::Tensor& input) const { return with_attention(input); }
  at::Tensor think(const at::Tensor& hidden) const { return with_mlp(hidden); }
  struct Routed;
  Routed route(const at::Tensor& hidden) const;
  DispatchedTokens send(DispatchedTokens prepared) const;
  at::Tensor run_experts(Routed& routed) const;
  at::Tensor combine(at::Tensor rows, const Routed& routed) const;

 private:
  /// What a norm gives. It lives until the residual is added, as in Megatron-LM's
  /// TransformerLayer.forward(), or is freed as soon as it was read: by a linear layer that has the
  /// norm inside, or in order to be computed again.
  struct NormOutput {
    at::Tensor value;
    std::optional<DiscardedOutputs> discarded;
    void was_read_for(const at::Tensor& output) const;
  };
  NormOutput norm_output(const std::optional<Norm>& norm,
                         const char* name,
                         const at::Tensor& input,
                         bool recompute) const;
  static at::Tensor given_to(bool has_norm, NormOutput& normal);
  at::Tensor recomputed_late(const torch::autograd::variable_list& inputs) const;
  at::Tensor finish(const at::Tensor& hidden, const at::Tensor& begun) const;
  at::Tensor in_turn(const at::Tensor& input) const;
  at::Tensor in_parallel(const at::Tensor& input) const;
  at::Tensor with_attention(const at::Tensor& given) const;
  at::Tensor with_mlp(const at::Tensor& given) const;
  /// The sum of the layer's input and of what attention or MLP gives, whose norm is `after`.
  at::Tensor added(const at::Tensor& output,
                   const at::Tensor& bias,
                   const std::optional<Norm>& after,
                   const char* name,
                   const at::Tensor& input) const;
  at::Tensor normalized(const Norm& norm, const char* name, const at::Tensor& input) const;
  at::Tensor before_sum(const at::Tensor& bias) const;
  BiasDropoutAdd bias_dropout() const;

  ShardContext& context_;
  std::string name_;
  estimator::Recomputed recomputed_;
  bool norm_in_projection_, recomputes_attention_norm_, recomputes_mlp_norm_, recomputes_mlp_,
      norm_in_mlp_, has_experts_;
  std::shared_ptr<const RotaryEmbedding> rotary_;  ///< null without rotary positions
  std::optional<Norm> attention_norm_;
  std::unique_ptr<const Attention> attention_;
  std::unique_ptr<ScaledModule> core_scales_;
  std::optional<Norm> mlp_norm_;
  std::unique_ptr<const FeedForward> mlp_;
  std::optional<Norm> after_attention_, after_mlp_;
};

/// What the steps of a layer of experts share.
struct TransformerLayer::Routed {
  at::Tensor hidden, shared;  ///< the sum so far, and what the shared experts add to it
  DispatchedTokens tokens;
  NormOutput normal;  ///< before the router; without its value
};

}  // namespace models
