#include "models/stage.h"

#include <numeric>

#include "models/cross_entropy.h"

namespace models {
namespace {

ParameterSource parameter_source(const ShardContext& context) {
  return {.observer = context.observer,
          .options = context.options(),
          .seed = context.plan.training.seed,
          .tensor_size = context.tensor_size(),
          .tensor_index = context.coordinate.tensor};
}

}  // namespace

Stage::Stage(ShardContext& context) : context_(context), store_(parameter_source(context)) {
  const std::vector<int64_t> layers = context.plan.layers_of_stages();
  const int64_t stage = context.coordinate.pipeline;
  const int64_t first = std::accumulate(layers.begin(), layers.begin() + stage, int64_t{0});
  if (context.is_first_stage()) embedding_ = std::make_unique<Embedding>(context, store_);

  const bool rope = context.plan.model.position_embedding == estimator::PositionEmbedding::kRope;
  const auto core = std::make_shared<const CoreAttention>(context);
  const auto rotary = rope ? std::make_shared<const RotaryEmbedding>(context) : nullptr;
  layers_.reserve(static_cast<std::size_t>(layers[stage]));
  for (int64_t number = first; number < first + layers[stage]; ++number) {
    layers_.emplace_back(context, store_, number, core, rotary);
  }
  if (context.is_last_stage()) build_head();
  if (context.plan.model.tie_embeddings && context.stages() > 1 && embedding_) {
    tied_weight_ = &embedding_->word_weight();
  }
}

void Stage::build_head() {
  final_norm_ = std::make_unique<Norm>(context_, store_, "final_norm");
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
      spec.shared_weight = tied_weight_ = &store_.add(copy);
    }
  }
  output_ = std::make_unique<ColumnParallelLinear>(context_, store_, spec);
}

std::vector<int64_t> Stage::hidden_shape() const {
  return {context_.local_sequence(),
          context_.plan.training.micro_batch_size,
          context_.plan.model.hidden_size};
}

at::Tensor Stage::loss(const at::Tensor& hidden, const at::Tensor& labels) const {
  at::Tensor logits = [&] {
    const at::Tensor normalized = [&] {
      ModuleScope norm(context_.observer, "final_norm");
      return final_norm_->forward(hidden);
    }();
    ModuleScope output(context_.observer, "output_layer");
    return output_->forward(normalized);
  }();
  ModuleScope scope(context_.observer, "loss");
  const estimator::LossBuffers buffers = context_.dialect().loss_buffers;
  if (buffers == estimator::LossBuffers::kTorch && !context_.groups.tensor) {
    return plain_cross_entropy(logits, labels);
  }
  // nanotron casts the logits before its loss copies them; the cast ones live as long as the loss.
  if (buffers == estimator::LossBuffers::kTwo) logits = logits.to(at::kFloat);
  return vocabulary_parallel_cross_entropy(
      logits, labels, context_.groups.tensor, context_.plan.training.cross_entropy_fusion);
}

at::Tensor Stage::forward(const at::Tensor& input, const at::Tensor& labels) const {
  at::Tensor hidden = embedding_ ? embedding_->forward(input) : input;
  for (const TransformerLayer& layer : layers_) hidden = layer.forward(hidden);
  return output_ ? loss(hidden, labels) : hidden;
}

}  // namespace models
