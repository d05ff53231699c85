#include "models/pipeline/model_chunk.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/layers/attached_loss.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/recompute.h"

namespace models {

ModelChunk::ModelChunk(ShardContext& context,
                       ParameterStore& store,
                       int64_t chunk,
                       const SharedParts& shared)
    : context_(context),
      rotary_(shared.rotary),
      rotary_in_window_(shared.rotary_in_window),
      window_(shared.window),
      chunk_(chunk),
      is_first_(context.is_first_piece(chunk)) {
  const int64_t first_unit = store.next_unit();
  const std::vector<int64_t> layers = context.plan.layers_of_virtual_stages();
  const int64_t piece = context.piece(chunk);
  LayerNumber number{.of_model =
                         std::accumulate(layers.begin(), layers.begin() + piece, int64_t{0})};
  for (int64_t other = 0; other < chunk; ++other) number.of_rank += layers[context.piece(other)];
  if (is_first_ || context.predicts_more_tokens(chunk)) {
    embedding_unit_ = store.begin_unit();
    embedding_ = std::make_unique<Embedding>(context, store, /*is_copy=*/!is_first_);
  }
  layers_.reserve(static_cast<std::size_t>(layers[piece]));
  for (int64_t built = 0; built < layers[piece]; ++built, number = number.after(1)) {
    layer_units_.push_back(store.begin_unit());
    layers_.emplace_back(
        context, store, "layers." + std::to_string(number.of_model), number, shared);
  }
  build_end(store, chunk, number, shared);
  units_ = all_units(store, first_unit);
  const bool has_copies = context.plan.model.tie_embeddings || norm_is_apart();
  if (has_copies && context.stages() > 1 && embedding_) tied_weight_ = &embedding_->word_weight();
}

ChunkUnits ModelChunk::all_units(const ParameterStore& store, int64_t first) const {
  const bool is_loop = output_ && embedding_ && head_unit_ == embedding_unit_;
  return {.first = first, .last = is_loop ? head_unit_ : store.next_unit() - 1, .is_loop = is_loop};
}

/// `next` is the number of the layer after the chunk's.
void ModelChunk::build_end(ParameterStore& store,
                           int64_t chunk,
                           const LayerNumber& next,
                           const SharedParts& shared) {
  const bool is_last = context_.is_last_piece(chunk);
  if (is_last && !norm_is_apart()) begin_head(store);
  if (context_.has_final_norm(chunk)) {
    if (norm_is_apart()) norm_unit_ = store.begin_unit();
    final_norm_ = std::make_unique<Norm>(context_, store, "final_layernorm");
  }
  if (context_.predicts_more_tokens(chunk)) {
    build_predictions(store, next, shared);
    begin_head(store);
  }
  if (is_last) build_output(store);
}

/// TorchTitan makes a unit of [norm, output] also where output and embedding have one weight, which
/// both units gather then (apply_fsdp in torchtitan/models/llama3/infra/parallelize.py of v0.2.2).
void ModelChunk::begin_head(ParameterStore& store) {
  const bool is_whole = context_.plan.model.tie_embeddings && context_.fully_sharded.empty();
  const bool is_one = is_whole || context_.framework().root_unit;
  head_unit_ = is_one && embedding_ ? embedding_unit_ : store.begin_unit();
  store.go_on_with_unit(head_unit_);
}

void ModelChunk::build_predictions(ParameterStore& store,
                                   const LayerNumber& next,
                                   const SharedParts& shared) {
  const int64_t count = context_.plan.model.mtp_num_layers;
  predictions_.reserve(static_cast<std::size_t>(count));
  for (int64_t depth = 0; depth < count; ++depth) {
    prediction_units_.push_back(store.begin_unit());
    predictions_.emplace_back(context_, store, depth, next.after(depth), shared);
  }
}

void ModelChunk::build_output(ParameterStore& store) {
  LinearSpec spec{.name = "output_layer",
                  .inputs = context_.plan.model.hidden_size,
                  .outputs = context_.plan.padded_vocab_size(),
                  .bias = context_.plan.model.add_output_bias,
                  .output_layer = true,
                  .quantized_output = context_.plan.training.fp8_output_proj,
                  .whole_input = context_.framework().separate_products};
  if (context_.plan.model.tie_embeddings) spec.shared_weight = shared_output_weight(store);
  output_ = std::make_unique<ColumnParallelLinear>(context_, store, spec);
  if (!context_.fused_weight_gradient()) return;
  // Fused products add the parts of the output layer, autograd that of an embedding.
  Parameter& weight = output_->weight();
  weight.autograd_adds_too = embedding_ && &weight == &embedding_->word_weight();
  weight.contributions =
      1 + static_cast<int>(context_.plan.model.mtp_num_layers) + (weight.autograd_adds_too ? 1 : 0);
}

/// Megatron-LM makes an output layer of its own beside a copied embedding, and never uses it
/// (skip_weight_param_allocation in megatron/core/models/gpt/gpt_model.py).
Parameter* ModelChunk::shared_output_weight(ParameterStore& store) {
  ParameterSpec copy = word_embedding_spec(context_, /*is_copy=*/true);
  if (!embedding_) return tied_weight_ = &store.add(copy);
  if (!is_first_ && context_.plan.training.framework == estimator::Framework::kMegatronLm) {
    copy.name = "output_layer.weight";
    store.add(copy).contributions = 0;
  }
  Parameter& weight = embedding_->word_weight();
  const bool is_gathered_apart = !context_.fully_sharded.empty() && head_unit_ != embedding_unit_;
  return is_gathered_apart ? &store.add_leaf(weight) : &weight;
}

void ModelChunk::compute_deferred_gradients() const {
  if (!output_) return;
  const ModuleScope scope(context_.observer, "output_layer");
  output_->compute_deferred_gradients();
}

at::Tensor ModelChunk::in_unit(int64_t unit, const at::Tensor& input, const UnitBody& body) const {
  enter_unit(unit);
  if (context_.fully_sharded.empty()) return body(input);
  return context_.fully_sharded[static_cast<std::size_t>(chunk_)]->run(unit, input, body);
}

void ModelChunk::enter_unit(int64_t unit) const {
  if (context_.data_parallel) context_.data_parallel->before_unit(unit);
}

/// Of weights that do not change the output has no gradient, and checkpoints of whole layers would
/// have none (enable_input_require_grads in transformers/modeling_utils.py,
/// maybe_enable_recompute_inputs_grad in megatron/bridge/peft/recompute.py).
at::Tensor ModelChunk::embed(const at::Tensor& tokens) const {
  const bool asks_for_gradient = context_.plan.training.has_adapters() &&
                                 context_.plan.training.recompute == estimator::Recompute::kFull;
  return in_unit(embedding_unit_, tokens, [&](const at::Tensor& input) {
    const at::Tensor embedded = embedding_->forward(input);
    return asks_for_gradient ? embedded.requires_grad_(true) : embedded;
  });
}

at::Tensor ModelChunk::normalized(const at::Tensor& hidden) const {
  const ModuleScope scope(context_.observer, "final_layernorm");
  return final_norm_->forward(hidden);
}

at::Tensor ModelChunk::logits(const at::Tensor& normalized) const {
  const ModuleScope scope(context_.observer, "output_layer");
  const bool gathers = context_.framework().separate_products;
  const at::Tensor scores =
      output_->forward(gathers ? whole_input(context_, normalized) : normalized);
  const double cap = context_.plan.model.final_logit_softcapping;
  return cap > 0 ? at::tanh(scores / cap) * cap : scores;
}

at::Tensor ModelChunk::loss(at::Tensor logits, const at::Tensor& labels) const {
  ModuleScope scope(context_.observer, "loss");
  using estimator::LossBuffers;
  const LossBuffers buffers = context_.framework().loss_buffers;
  const Group& ranks = context_.groups.tensor;
  const bool parallel = buffers == LossBuffers::kTorchParallel;
  if (!ranks && (parallel || buffers == LossBuffers::kTorch)) {
    return plain_cross_entropy(logits, labels);
  }
  if (parallel) return parallel_cross_entropy(logits, labels, ranks);
  // nanotron casts the logits before its loss copies them; the cast ones live as long as the loss.
  if (buffers == LossBuffers::kTwo) logits = logits.to(at::kFloat);
  return vocabulary_parallel_cross_entropy(
      logits, labels, ranks, context_.plan.training.cross_entropy_fusion, context_.buffers);
}

at::Tensor ModelChunk::predict(const at::Tensor& hidden, at::Tensor tokens) const {
  std::vector<at::Tensor> parts = {hidden};
  for (std::size_t i = 0; i < predictions_.size(); ++i) {
    tokens = following(tokens);
    const at::Tensor embedded = embed(tokens);
    parts.push_back(in_unit(prediction_units_[i], parts.back(), [&](const at::Tensor& before) {
      return predictions_[i].forward(before, embedded);
    }));
  }
  return at::cat(parts);
}

/// process_mtp_loss in megatron/core/transformer/multi_token_prediction.py: each loss is a mean
/// over the tokens that have a label so far ahead. Scores live until the next ones are there.
at::Tensor ModelChunk::with_losses(const at::Tensor& predictions, at::Tensor labels) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const double weight = model.mtp_loss_scaling_factor / static_cast<double>(model.mtp_num_layers);
  const double share = 1.0 / static_cast<double>(context_.plan.micro_batches());
  const std::vector<at::Tensor> parts = predictions.chunk(1 + model.mtp_num_layers, 0);
  at::Tensor hidden = parts.front(), scores;
  at::Tensor mask = at::ones(labels.sizes(), context_.options().dtype(at::kFloat));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    scores = in_unit(head_unit_, parts[i], [&](const at::Tensor& part) { return logits(part); });
    labels = following(labels);
    const at::Tensor of_tokens = loss(scores, labels);
    const ModuleScope scope(context_.observer, "loss");
    mask = following(mask);
    count_right(scores, labels, mask, context_.groups.tensor);
    const at::Tensor losses = mask * of_tokens * weight / mask.sum().clamp_min(1);
    hidden = attach_loss(hidden, losses, share);
  }
  return hidden;
}

namespace {

/// GPTModel.forward of Megatron-LM holds what its output layer reads until the loss is there; a
/// frozen one keeps nothing of it.
bool holds_read(const ShardContext& context) {
  return context.plan.training.framework == estimator::Framework::kMegatronLm;
}

/// GPTModel.forward of Megatron-LM holds the embedding's output until it returns. Of one sample
/// without dropout this is a view, and the first layer's input another tensor over its memory
/// (make_viewless_tensor in megatron/core/transformer/transformer_block.py), which is cut alone. A
/// frozen first layer keeps none of it.
bool holds_embedded(const ShardContext& context) {
  const estimator::TrainingConfig& t = context.plan.training;
  if (holds_read(context) && t.has_adapters()) return true;
  return t.distribute_saved_activations && t.framework == estimator::Framework::kMegatronLm &&
         t.micro_batch_size == 1 && context.plan.model.hidden_dropout == 0;
}

/// Attention is causal without a mask if there is no padding, which the host waits to know.
void read_mask(const at::Tensor& ones) { ones.to(at::kBool).all().item<bool>(); }

}  // namespace

ChunkOutput ModelChunk::forward(const at::Tensor& input, const MicroBatchData& data) const {
  return handed_out([&] {
    const AutocastScope autocast(context_.autocast());
    return compute(input, data);
  }());
}

/// accelerate casts what the model returns to fp32 (convert_outputs_to_fp32 in
/// accelerate/utils/operations.py), and DistributedDataParallel copies it where it looks for unused
/// parameters (_DDPSink in torch/nn/parallel/distributed.py). The caller holds it until its forward
/// is over.
ChunkOutput ModelChunk::handed_out(ChunkOutput result) const {
  if (!context_.framework().returns_logits) return result;
  if (context_.autocast()) result.logits = result.logits.to(at::kFloat);
  if (!context_.finds_unused_parameters()) return {.output = result.output, .logits = {}};
  const ChunkOutput copied{.output = result.output.clone(), .logits = result.logits.clone()};
  return {.output = copied.output, .logits = {}};
}

ChunkOutput ModelChunk::compute(const at::Tensor& input, const MicroBatchData& data) const {
  at::Tensor hidden = input, embedded;
  if (is_first_) {
    hidden = embed(hidden);
    if (holds_embedded(context_)) embedded = hidden.detach();
  }
  begin_layers(data);
  hidden = through_layers(std::move(hidden));
  end_layers();
  if (final_norm_ && norm_is_apart()) {
    hidden = in_unit(norm_unit_, hidden, [&](const at::Tensor& last) { return normalized(last); });
  }
  if (!output_) return {.output = hidden, .logits = {}};
  if (norm_is_apart()) hidden = with_losses(predict(hidden, data.tokens), data.labels);
  return with_loss(std::move(hidden), data.labels);
}

void ModelChunk::begin_layers(const MicroBatchData& data) const {
  if (data.ones.defined()) read_mask(data.ones);
  if (window_) window_->begin_forward(data.ones);
  for (const auto& rotary : {rotary_, rotary_in_window_}) {
    if (rotary) rotary->begin_forward();  // before the first layer runs
  }
  if (context_.delayed_scales) context_.delayed_scales->begin_layers();
}

void ModelChunk::end_layers() const {
  if (context_.delayed_scales) context_.delayed_scales->end_layers();
  if (window_) window_->end_forward();
}

at::Tensor ModelChunk::through_layers(at::Tensor hidden) const {
  const auto joined =
      static_cast<std::size_t>(estimator::layers_of_checkpoint(context_.plan.training));
  for (std::size_t i = 0; i < layers_.size(); i += joined) {
    hidden = joined == 1 ? through_layer(i, hidden)
                         : through_joined(i, std::min(i + joined, layers_.size()), hidden);
  }
  return hidden;
}

at::Tensor ModelChunk::through_joined(std::size_t first,
                                      std::size_t end,
                                      const at::Tensor& input) const {
  const auto segment = [this, first, end](const torch::autograd::variable_list& inputs) {
    const bool is_again = c10::GradMode::is_enabled();  // the first run keeps no graph
    at::Tensor hidden = inputs[0];
    for (std::size_t i = first; i < end; ++i) {
      if (!is_again) enter_unit(layer_units_[i]);
      const ModuleScope scope(context_.observer, layers_[i].name());
      hidden = layers_[i].compute(hidden);
    }
    return hidden;
  };
  return checkpoint(segment, {input}, context_.observer, layer_checkpoint(context_));
}

/// The checkpoint of a recomputed layer is inside of its unit, or around it.
at::Tensor ModelChunk::through_layer(std::size_t number, const at::Tensor& input) const {
  const auto unit = [this, number](const at::Tensor& hidden, const UnitBody& body) {
    return in_unit(layer_units_[number], hidden, body);
  };
  const TransformerLayer& layer = layers_[number];
  if (context_.framework().checkpoints_units) return layer.forward(input, unit);
  return unit(input, [&](const at::Tensor& hidden) { return layer.forward(hidden); });
}

/// The unit ends where the loss begins, and nothing may hold on to the hidden states meanwhile; or
/// it is the whole model's, which holds what its head reads until its forward is over
/// (LlamaForCausalLM.forward in models/llama/modeling_llama.py).
ChunkOutput ModelChunk::with_loss(at::Tensor hidden, const at::Tensor& labels) const {
  ChunkOutput result;
  at::Tensor read;
  if (context_.framework().root_unit) {
    result.output = in_unit(head_unit_, hidden, [&](const at::Tensor& last) {
      read = normalized(last);
      result.logits = logits(read);
      return loss(result.logits, labels);
    });
    return result;
  }
  at::Tensor scores = in_unit(head_unit_, hidden, [&](const at::Tensor& last) {
    read = norm_is_apart() ? last : normalized(last);
    return logits(read);
  });
  hidden = at::Tensor();
  if (!holds_read(context_)) read = at::Tensor();
  if (!labels.defined()) return {.output = scores, .logits = {}};
  const at::Tensor held = context_.torch_pipeline() ? scores.detach() : at::Tensor();
  return {.output = loss(std::move(scores), labels), .logits = held};
}

}  // namespace models
