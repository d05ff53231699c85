#include "estimator/schedule/piece_order.h"

#include <algorithm>

namespace estimator {
namespace {

class PieceWriter {
 public:
  explicit PieceWriter(bool attention_released_early)
      : attention_released_early_(attention_released_early) {}

  void forward(std::optional<int64_t> layer, PieceKind kind) {
    if (layer) pieces_.push_back({.layer = *layer, .kind = kind});
  }
  void backward(std::optional<int64_t> layer, PieceKind kind) {
    if (layer) pieces_.push_back({.is_backward = true, .layer = *layer, .kind = kind});
  }

  /// TransformerLayerSchedulePlan.run(). The weights of the chunk's first layer come later.
  void layers(std::optional<int64_t> forwards, std::optional<int64_t> backwards) {
    using enum PieceKind;
    backward(backwards, kPrediction);
    backward(backwards, kCombine);
    forward(forwards, kAttention);
    backward(backwards, kMlp);
    forward(forwards, kDispatch);
    backward(backwards, kMlpWeights);
    backward(backwards, kDispatch);
    if (attention_released_early_) backward(backwards, kAttention);
    forward(forwards, kMlp);
    forward(forwards, kCombine);
    if (!attention_released_early_) backward(backwards, kAttention);
    forward(forwards, kPrediction);
    if (backwards && *backwards > 0) backward(backwards, kAttentionWeights);
  }

  std::vector<Piece> take() { return std::move(pieces_); }

 private:
  bool attention_released_early_;
  std::vector<Piece> pieces_;
};

std::optional<int64_t> chunk_of(const std::optional<int64_t>& layers) {
  return layers ? std::optional<int64_t>(0) : std::nullopt;
}

}  // namespace

std::vector<Piece> piece_order(const CombinedChunks& chunks) {
  using enum PieceKind;
  const auto forward = chunk_of(chunks.forward_layers), backward = chunk_of(chunks.backward_layers);
  const int64_t forwards = chunks.forward_layers.value_or(0);
  const int64_t backwards = chunks.backward_layers.value_or(0);
  const int64_t together = std::min(forwards, backwards);
  PieceWriter writer(chunks.attention_released_early);
  writer.forward(forward, kBegin);
  writer.backward(backward, kEnd);
  for (int64_t i = 0; i < together; ++i) writer.layers(i, backwards - 1 - i);
  for (int64_t i = together; i < backwards; ++i) writer.layers(std::nullopt, backwards - 1 - i);
  for (int64_t i = together; i < forwards; ++i) writer.layers(i, std::nullopt);
  if (backwards > 0) writer.backward(0, kAttentionWeights);
  writer.forward(forward, kEnd);
  writer.backward(backward, kBegin);
  return writer.take();
}

}  // namespace estimator
