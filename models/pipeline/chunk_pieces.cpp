#include "models/pipeline/chunk_pieces.h"

#include <ATen/ops/cat.h>

#include <utility>

namespace models {

using estimator::Piece;
using estimator::PieceKind;

ChunkPieces::ChunkPieces(const ModelChunk& chunk,
                         const at::Tensor& input,
                         const MicroBatchData& data,
                         const SideStream& sending)
    : chunk_(chunk), sending_(sending), data_(data), values_({input}), tokens_(data.tokens) {
  for (std::size_t i = 0; i < chunk.layers_.size(); ++i) {
    const bool ends = i + 1 == chunk.layers_.size() && chunk.final_norm_ && chunk.norm_is_apart();
    LayerSurroundings around{.modules = {chunk.layers_[i].name()},
                             .before = [this, i] { chunk_.enter_unit(chunk_.layer_units_[i]); }};
    if (ends) {
      around.last = [this](const at::Tensor& hidden) {
        chunk_.enter_unit(chunk_.norm_unit_);
        return chunk_.normalized(hidden);
      };
    }
    add_layer(chunk.layers_[i], std::move(around));
  }
  add_predictions();
}

void ChunkPieces::add_layer(const TransformerLayer& layer, LayerSurroundings surroundings) {
  layers_.emplace_back(chunk_.context_, layer, std::move(surroundings));
}

void ChunkPieces::add_predictions() {
  for (std::size_t i = 0; i < chunk_.predictions_.size(); ++i) {
    const PredictionLayer& prediction = chunk_.predictions_[i];
    add_layer(prediction.layer(),
              {.modules = {prediction.name(), PredictionLayer::kLayer},
               .first = [this, i](const at::Tensor& in) { return begin_prediction(i, in); },
               .prediction = [this, i](const at::Tensor& in) { return end_prediction(i, in); }});
  }
}

/// submodule_mtp_pre_dispatch_forward
at::Tensor ChunkPieces::begin_prediction(std::size_t number, const at::Tensor& hidden) {
  if (number == 0) predicted_ = {hidden};
  tokens_ = following(tokens_);
  const at::Tensor embedded = chunk_.embed(tokens_);
  chunk_.enter_unit(chunk_.prediction_units_[number]);
  return chunk_.predictions_[number].begin(predicted_.back(), embedded);
}

/// submodule_mtp_postprocess_forward
at::Tensor ChunkPieces::end_prediction(std::size_t number, const at::Tensor& hidden) {
  predicted_.push_back(chunk_.predictions_[number].end(hidden));
  if (number + 1 < chunk_.predictions_.size()) return predicted_.back();
  return at::cat(std::exchange(predicted_, {}));
}

bool ChunkPieces::has(const Piece& piece) const {
  if (piece.kind == PieceKind::kBegin || piece.kind == PieceKind::kEnd) return true;
  return layers_[static_cast<std::size_t>(piece.layer)].has(piece.kind);
}

void ChunkPieces::start_forward() { last_ = sending_.current_stream_point(); }

void ChunkPieces::start_backward(const at::Tensor& gradient) {
  gradients_ = {gradient};
  last_ = sending_.current_stream_point();
}

/// Whatever its stream, a piece comes after the one before it (stream_acquire_context), but for
/// weights' gradients, for which no piece waits (TransformerLayerNode.backward_dw).
void ChunkPieces::run(const Piece& piece) {
  if (piece.kind == PieceKind::kMlpWeights || piece.kind == PieceKind::kAttentionWeights)
    return backward(piece);
  if (piece.kind != PieceKind::kDispatch && piece.kind != PieceKind::kCombine)
    return run_now(piece);
  const SideStream::Scope beside(sending_);
  run_now(piece);
}

void ChunkPieces::ended(const Piece& piece) {
  if (piece.kind == PieceKind::kAttentionWeights) layers_.pop_back();
}

void ChunkPieces::run_now(const Piece& piece) {
  sending_.current_waits_for(last_);
  piece.is_backward ? backward(piece) : forward(piece);
  last_ = sending_.current_stream_point();
}

void ChunkPieces::end_forward() { sending_.current_waits_for(last_); }

void ChunkPieces::end_backward() {
  sending_.current_waits_for(last_);
  layers_.clear();
}

void ChunkPieces::forward(const Piece& piece) {
  const Tensors given = std::exchange(values_, {});
  if (piece.kind == PieceKind::kBegin) {
    values_ = begin(given);
  } else if (piece.kind == PieceKind::kEnd) {
    values_ = end(given);
  } else {
    values_ = layers_[static_cast<std::size_t>(piece.layer)].forward(piece.kind, given);
  }
}

/// Of the first piece of the model: hidden states of tokens.
ChunkPieces::Tensors ChunkPieces::begin(const Tensors& input) {
  chunk_.begin_layers(data_);
  if (!chunk_.is_first_) return input;
  return begin_.forward({}, [&](const Tensors&) { return Tensors{chunk_.embed(input[0])}; });
}

/// Of the last piece of the model: the loss of each token.
ChunkPieces::Tensors ChunkPieces::end(const Tensors& hidden) {
  chunk_.end_layers();
  if (!chunk_.output_) return hidden;
  return end_.forward(hidden, [&](const Tensors& read) {
    const at::Tensor last =
        chunk_.norm_is_apart() ? chunk_.with_losses(read[0], data_.labels) : read[0];
    return Tensors{chunk_.with_loss(last, data_.labels).output};
  });
}

at::Tensor ChunkPieces::take_output() { return std::exchange(values_, {})[0]; }

void ChunkPieces::end_with(const at::Tensor& output) {
  if (chunk_.output_) end_.end_with(output);
}

void ChunkPieces::backward(const Piece& piece) {
  if (piece.kind == PieceKind::kBegin) {
    if (!chunk_.is_first_) return;
    begin_.backward(std::exchange(gradients_, {}));
    gradients_ = {at::Tensor()};
  } else if (piece.kind == PieceKind::kEnd) {
    if (chunk_.output_) gradients_ = end_.backward(std::exchange(gradients_, {}));
  } else {
    LayerPieces& layer = layers_[static_cast<std::size_t>(piece.layer)];
    gradients_ = layer.backward(piece.kind, std::exchange(gradients_, {}));
  }
}

at::Tensor ChunkPieces::take_input_gradient() { return std::exchange(gradients_, {})[0]; }

}  // namespace models
