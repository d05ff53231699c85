// A layer of multi-token prediction (Megatron-LM's MultiTokenPredictionLayer, DeepSeek-V3): a
// transformer layer over hidden states and the embeddings of the tokens that follow, which predicts
// the token one further ahead than the layer before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/norm.h"
#include "models/layers/parallel_linear.h"
#include "models/pipeline/transformer_layer.h"

namespace models {

class PredictionLayer {
 public:
  /// Number `depth` of them, from 0; `number` is that of its transformer layer.
  PredictionLayer(ShardContext& context,
                  ParameterStore& store,
                  int64_t depth,
                  const LayerNumber& number,
                  const SharedParts& shared);

  /// Hidden states and embeddings, both [s or s/t, b, h] -> the same shape, after a final norm. If
  /// layers are recomputed it keeps only these two.
  at::Tensor forward(const at::Tensor& hidden, const at::Tensor& embedded) const;

  /// forward() in steps, for layers that run in pieces: what layer() is given, and what is made of
  /// its output.
  at::Tensor begin(const at::Tensor& hidden, const at::Tensor& embedded) const;
  at::Tensor end(const at::Tensor& output) const;
  const TransformerLayer& layer() const { return layer_; }
  const std::string& name() const { return name_; }
  static constexpr const char* kLayer = "mtp_model_layer";

 private:
  at::Tensor compute(const at::Tensor& hidden, const at::Tensor& embedded) const;
  at::Tensor joined(const at::Tensor& hidden, const at::Tensor& embedded) const;
  at::Tensor normalized(const Norm& norm, const char* name, const at::Tensor& input) const;

  ShardContext& context_;
  std::string name_;
  Norm embedding_norm_, hidden_norm_;
  ColumnParallelLinear projection_;
  TransformerLayer layer_;
  Norm final_norm_;
};

/// The tokens [s, b] that follow each token; 0 after the last one (roll_tensor in
/// megatron/core/transformer/multi_token_prediction.py). Likewise of labels and masks.
at::Tensor following(const at::Tensor& tokens);

/// How many of the predictions are right, which Megatron-LM counts for its log
/// (_compute_mtp_acceptance_counts). `scores` is [s, b, V / t]; `labels` and `mask` are [s, b].
at::Tensor count_right(const at::Tensor& scores,
                       const at::Tensor& labels,
                       const at::Tensor& mask,
                       const Group& group);

}  // namespace models
