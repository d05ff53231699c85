#include "models/layers/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include "models/layers/dropout.h"
#include "models/layers/sequence_mappings.h"

namespace models {

ParameterSpec word_embedding_spec(const ShardContext& context, bool is_copy) {
  return {.name = "embedding.word_embeddings.weight",
          .full_shape = {context.plan.padded_vocab_size(), context.plan.model.hidden_size},
          .sharded_dim = 0,
          .shared_copy = is_copy,
          .of_vocabulary = true};
}

Embedding::Embedding(ShardContext& context, ParameterStore& store, bool is_copy)
    : context_(context), words_(&store.add(word_embedding_spec(context, is_copy))) {
  const estimator::ModelConfig& model = context.plan.model;
  if (model.position_embedding == estimator::PositionEmbedding::kLearnedAbsolute) {
    positions_ = &store.add({.name = "embedding.position_embeddings.weight",
                             .full_shape = {model.max_position_embeddings, model.hidden_size}});
  }
}

/// This rank's rows; zeros for tokens whose row another rank holds.
at::Tensor Embedding::look_up(const at::Tensor& tokens) const {
  const int64_t rows = words_->value.size(0);
  if (context_.tensor_size() == 1) return at::embedding(words_->value, tokens);
  const at::Tensor local = tokens - context_.coordinate.tensor * rows;
  const at::Tensor elsewhere = (local < 0).logical_or_(local >= rows);
  const at::Tensor found = at::embedding(words_->value, local.masked_fill(elsewhere, 0));
  return found.masked_fill_(elsewhere.unsqueeze(-1), 0);
}

/// Megatron-LM looks up [b, s] and copies what it found to [s, b, h], where that is another order
/// (language_model_embedding.py, and forward of VocabParallelEmbedding in
/// megatron/core/tensor_parallel/layers.py).
at::Tensor Embedding::sequence_first(const at::Tensor& found) const {
  return context_.framework().transformer_engine && found.size(1) > 1 ? found.clone() : found;
}

at::Tensor Embedding::forward(const at::Tensor& tokens) const {
  ModuleScope scope(context_.observer, "embedding");
  const auto& group = context_.groups.tensor;
  const bool sequence_parallel = context_.sequence_parallel() && group != nullptr;
  ParameterList parameters = {words_};
  if (positions_ != nullptr) parameters.push_back(positions_);
  at::Tensor hidden =
      in_module(context_.modules, this, parameters, tokens, [this](const at::Tensor& in) {
        return look_up(in);
      });
  if (positions_ == nullptr) {
    if (sequence_parallel) {
      hidden = reduce_scatter_to_sequence(sequence_first(hidden), group);
      // clone_scatter_output_in_embedding, which is there for a part that is a view of the whole.
      if (context_.framework().transformer_engine) hidden = hidden.clone();
    } else {
      hidden = sequence_first(group ? reduce_from_ranks(hidden, group) : hidden);
    }
  } else {
    if (group) hidden = reduce_from_ranks(hidden, group);
    const at::Tensor table = positions_->value.narrow(0, 0, context_.plan.sequence_length());
    hidden = hidden + own_chunks(table, 0, context_.context_place()).unsqueeze(1);
    hidden = sequence_first(hidden);
    // clone_scatter_output_in_embedding
    if (sequence_parallel) hidden = scatter_to_sequence(hidden, group).clone();
  }
  return dropout(hidden, context_.plan.model.hidden_dropout);
}

}  // namespace models
