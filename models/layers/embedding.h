// Token embedding with its rows split over the tensor ranks, learned positions and dropout.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

class Embedding {
 public:
  Embedding(ShardContext& context, ParameterStore& store);

  /// tokens [s, b] (int64) -> [s or s/t, b, h].
  at::Tensor forward(const at::Tensor& tokens) const;
  /// [padded vocabulary / t, h]; a tied output layer uses it too.
  Parameter& word_weight() const { return *words_; }

 private:
  at::Tensor look_up(const at::Tensor& tokens) const;

  ShardContext& context_;
  Parameter* words_;
  Parameter* positions_ = nullptr;
};

/// The rows of the embedding, tied output copies included, are cut alike everywhere.
ParameterSpec word_embedding_spec(const ShardContext& context, const std::string& name);

}  // namespace models
