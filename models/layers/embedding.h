// Token embedding, whose rows are split over the tensor ranks, with learned positions and dropout.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

class Embedding {
 public:
  /// `is_copy`: another stage has this embedding, too.
  Embedding(ShardContext& context, ParameterStore& store, bool is_copy = false);

  /// tokens [s, b] (int64) -> [s or s/t, b, h].
  at::Tensor forward(const at::Tensor& tokens) const;
  /// [padded vocabulary / t, h]; a tied output layer uses it too.
  Parameter& word_weight() const { return *words_; }

 private:
  at::Tensor look_up(const at::Tensor& tokens) const;
  at::Tensor look_up_places(const at::Tensor& tokens) const;
  at::Tensor sequence_first(const at::Tensor& found) const;
  at::Tensor summed(const at::Tensor& words, bool scatters) const;

  ShardContext& context_;
  Parameter* words_;
  Parameter* positions_ = nullptr;
};

/// The specification of the embedding weight. It is the same for the tied copy of the output layer,
/// so that the rows are split in the same way everywhere.
ParameterSpec word_embedding_spec(const ShardContext& context, bool is_copy);

}  // namespace models
