#include "models/pipeline/model_chunk.h"

#include <numeric>

#include "models/data_parallel/fully_sharded.h"
#include "models/layers/cross_entropy.h"

namespace models {

ModelChunk::ModelChunk(ShardContext& context,
                       ParameterStore& store,
                       int64_t chunk,
                       const SharedParts& shared)
    : context_(context), rotary_(shared.rotary) {
  const std::vector<int64_t> layers = context.plan.layers_of_virtual_stages();
  const int64_t piece = context.piece(chunk);
  const int64_t first = std::accumulate(layers.begin(), layers.begin() + piece, int64_t{0});
  if (context.is_first_piece(chunk)) {
    embedding_unit_ = store.begin_unit();
    embedding_ = std::make_unique<Embedding>(context, store);
  }
  layers_.reserve(static_cast<std::size_t>(layers[piece]));
  int64_t before = 0;  // layers of this rank's other chunks
  for (int64_t other = 0; other < chunk; ++other) before += layers[context.piece(other)];
  for (int64_t number = 0; number < layers[piece]; ++number) {
    layer_units_.push_back(store.begin_unit());
    layers_.emplace_back(context,
                         store,
                         LayerNumber{.of_model = first + number, .of_rank = before + number},
                         shared);
  }
  if (context.is_last_piece(chunk)) build_head(store);
  if (context.plan.model.tie_embeddings && context.stages() > 1 && embedding_) {
    tied_weight_ = &embedding_->word_weight();
  }
}

void ModelChunk::build_head(ParameterStore& store) {
  const bool tied_here = context_.plan.model.tie_embeddings && embedding_ != nullptr;
  head_unit_ = tied_here ? embedding_unit_ : store.begin_unit();
  store.go_on_with_unit(head_unit_);
  final_norm_ = std::make_unique<Norm>(context_, store, "final_layernorm");
  LinearSpec spec{.name = "output_layer",
                  .inputs = context_.plan.model.hidden_size,
                  .outputs = context_.plan.padded_vocab_size(),
                  .output_layer = true};
  if (context_.plan.model.tie_embeddings) {
    if (embedding_) {
      spec.shared_weight = &embedding_->word_weight();
      // A fused product adds the output layer's part, autograd the embedding's.
      if (context_.fused_weight_gradient()) spec.shared_weight->contributions = 2;
    } else {
      ParameterSpec copy = word_embedding_spec(context_, "embedding.word_embeddings.weight");
      copy.shared_copy = true;
      spec.shared_weight = tied_weight_ = &store.add(copy);
    }
  }
  output_ = std::make_unique<ColumnParallelLinear>(context_, store, spec);
}

void ModelChunk::compute_deferred_gradients() const {
  if (!output_) return;
  const ModuleScope scope(context_.observer, "output_layer");
  output_->compute_deferred_gradients();
}

at::Tensor ModelChunk::in_unit(int64_t unit,
                               const at::Tensor& input,
                               const std::function<at::Tensor(const at::Tensor&)>& body) const {
  if (context_.data_parallel) context_.data_parallel->before_unit(unit);
  return context_.fully_sharded ? context_.fully_sharded->run(unit, input, body) : body(input);
}

at::Tensor ModelChunk::logits(const at::Tensor& hidden) const {
  const at::Tensor normalized = [&] {
    ModuleScope norm(context_.observer, "final_layernorm");
    return final_norm_->forward(hidden);
  }();
  ModuleScope output(context_.observer, "output_layer");
  return output_->forward(normalized);
}

at::Tensor ModelChunk::loss(at::Tensor logits, const at::Tensor& labels) const {
  ModuleScope scope(context_.observer, "loss");
  const estimator::LossBuffers buffers = context_.framework().loss_buffers;
  if (buffers == estimator::LossBuffers::kTorch && !context_.groups.tensor) {
    return plain_cross_entropy(logits, labels);
  }
  // nanotron casts the logits before its loss copies them; the cast ones live as long as the loss.
  if (buffers == estimator::LossBuffers::kTwo) logits = logits.to(at::kFloat);
  return vocabulary_parallel_cross_entropy(
      logits, labels, context_.groups.tensor, context_.plan.training.cross_entropy_fusion);
}

namespace {

/// GPTModel.forward of Megatron-LM holds the embedding's output until it returns. Of one sample
/// without dropout this is a view, and the first layer's input another tensor over its memory
/// (make_viewless_tensor in megatron/core/transformer/transformer_block.py), which is cut alone.
bool holds_embedded(const ShardContext& context) {
  const estimator::TrainingConfig& t = context.plan.training;
  return t.distribute_saved_activations && t.framework == estimator::Framework::kMegatronLm &&
         t.micro_batch_size == 1 && context.plan.model.hidden_dropout == 0;
}

}  // namespace

at::Tensor ModelChunk::forward(const at::Tensor& input, const at::Tensor& labels) const {
  at::Tensor hidden = input, embedded;
  if (embedding_) {
    hidden = in_unit(embedding_unit_, hidden, [&](const at::Tensor& tokens) {
      return embedding_->forward(tokens);
    });
    if (holds_embedded(context_)) embedded = hidden.detach();
  }
  if (rotary_) rotary_->tables();  // made before the first layer runs
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    hidden = in_unit(layer_units_[i], hidden, [&](const at::Tensor& layer_input) {
      return layers_[i].forward(layer_input);
    });
  }
  if (!output_) return hidden;
  // The unit ends where the loss begins: nothing may hold on to the hidden states meanwhile.
  at::Tensor scores =
      in_unit(head_unit_, hidden, [&](const at::Tensor& last) { return logits(last); });
  hidden = at::Tensor();
  return loss(std::move(scores), labels);
}

}  // namespace models
