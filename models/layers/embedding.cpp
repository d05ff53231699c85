#include "models/layers/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/layers/dropout.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/free_in_order.h"
#include "models/shard/kept_value.h"

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

namespace {

/// This rank's rows; zeros for tokens whose row another rank holds.
at::Tensor own_rows(const at::Tensor& weight, const at::Tensor& tokens, const TensorPlace& place) {
  const int64_t rows = weight.size(0);
  const at::Tensor local = tokens - place.index * rows;
  const at::Tensor elsewhere = (local < 0).logical_or_(local >= rows);
  const at::Tensor found = at::embedding(weight, local.masked_fill(elsewhere, 0));
  return found.masked_fill_(elsewhere.unsqueeze(-1), 0);
}

/// The gradient is that of the whole vocabulary, of which autograd is given this rank's rows, a
/// view (trait whole_embedding_gradient).
struct WholeGradientRows : torch::autograd::Function<WholeGradientRows> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& weight,
                            const at::Tensor& tokens,
                            const TensorPlace& place) {
    keep(context, place);
    context->save_for_backward({tokens});
    context->saved_data["rows"] = weight.size(0);
    return own_rows(weight, tokens, place);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const TensorPlace& place = kept<TensorPlace>(context);
    const int64_t rows = context->saved_data["rows"].toInt();
    const at::Tensor whole = at::embedding_dense_backward(gradients[0],
                                                          context->get_saved_variables()[0],
                                                          place.size * rows,
                                                          /*padding_idx=*/-1,
                                                          /*scale_grad_by_freq=*/false);
    return {whole.narrow(0, place.index * rows, rows), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Embedding::look_up(const at::Tensor& tokens) const {
  if (context_.tensor_size() == 1) return at::embedding(words_->value, tokens);
  const TensorPlace& place = words_->tensor_place;
  return context_.framework().whole_embedding_gradient
             ? WholeGradientRows::apply(words_->value, tokens, place)
             : own_rows(words_->value, tokens, place);
}

/// Megatron-LM looks up each token's place (LanguageModelEmbedding.forward), others read the rows.
at::Tensor Embedding::look_up_places(const at::Tensor& tokens) const {
  const bool batch_first = context_.batch_first_tokens();
  const int64_t sequence = context_.plan.sequence_length();
  const auto own = [this](const at::Tensor& whole) {
    return own_chunks(whole, 0, context_.context_place());
  };
  if (!context_.framework().transformer_engine) {
    return own(positions_->value.narrow(0, 0, sequence)).unsqueeze(batch_first ? 0 : 1);
  }
  const at::Tensor numbers = own(at::arange(sequence, tokens.options()));
  const at::Tensor of_tokens = numbers.unsqueeze(1).expand_as(tokens);
  return at::embedding(positions_->value, batch_first ? of_tokens.t() : of_tokens);
}

at::Tensor Embedding::sequence_first(const at::Tensor& found) const {
  return context_.batch_first_tokens() ? found.transpose(0, 1).contiguous() : found;
}

/// Over the tensor ranks. Without positions, each may get its part of the sequence at once.
at::Tensor Embedding::summed(const at::Tensor& words, bool scatters) const {
  const auto& group = context_.groups.tensor;
  if (scatters) return reduce_scatter_to_sequence(sequence_first(words), group);
  return group ? reduce_from_ranks(words, group) : words;
}

at::Tensor Embedding::forward(const at::Tensor& tokens) const {
  ModuleScope scope(context_.observer, "embedding");
  const auto& group = context_.groups.tensor;
  const bool sequence_parallel = context_.sequence_parallel() && group != nullptr;
  ParameterList parameters = {words_};
  if (positions_ != nullptr) parameters.push_back(positions_);
  const bool batch_first = context_.batch_first_tokens();
  at::Tensor words = in_module(context_.modules,
                               this,
                               parameters,
                               batch_first ? tokens.t() : tokens,
                               [this](const at::Tensor& in) { return look_up(in); });
  const bool scatters = sequence_parallel && positions_ == nullptr;
  words = summed(words, scatters);
  at::Tensor places = positions_ == nullptr ? at::Tensor() : look_up_places(tokens);
  at::Tensor hidden = places.defined() ? words + places : words;
  if (!scatters) hidden = sequence_first(hidden);
  if (sequence_parallel && !scatters) hidden = scatter_to_sequence(hidden, group);
  // clone_scatter_output_in_embedding, which is there for a part that is a view of the whole.
  const bool clones = scatters ? context_.framework().transformer_engine : sequence_parallel;
  if (clones) hidden = hidden.clone();
  const auto let_go = [&] { free_in_order({&words, &places}); };
  if (!context_.framework().transformer_engine) let_go();  // Megatron-LM's variables hold them
  hidden = dropout(hidden, context_.plan.model.hidden_dropout);
  let_go();
  return hidden;
}

}  // namespace models
