// The pieces into which Megatron-LM cuts the forward and the backward of a model chunk, so that
// those of two micro-batches take turns, and in which order they do
// (TransformerModelChunkSchedulePlan and TransformerLayerSchedulePlan in
// megatron/core/models/common/model_chunk_schedule_plan.py, d98e8a6).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace estimator {

enum class PieceKind : int64_t {
  kBegin,             ///< of the chunk: the embedding
  kAttention,         ///< of a layer: attention, and of experts all until tokens are sent
  kDispatch,          ///< tokens travel to their experts, beside compute
  kMlp,               ///< the experts, or a dense MLP
  kCombine,           ///< tokens travel back, beside compute
  kPrediction,        ///< the end of a layer that predicts a further token
  kMlpWeights,        ///< delayed products for the weights' gradients
  kAttentionWeights,  ///< the same
  kEnd,               ///< of the chunk: the head and the loss
};
inline constexpr int64_t kPieceKinds = 9;

struct Piece {
  bool is_backward = false;
  int64_t layer = 0;  ///< of the chunk
  PieceKind kind = PieceKind::kBegin;

  /// Among the pieces of its forward or backward.
  int64_t number() const { return layer * kPieceKinds + static_cast<int64_t>(kind); }
  bool operator==(const Piece&) const = default;
};

struct CombinedChunks {
  std::optional<int64_t> forward_layers;   ///< empty: no forward
  std::optional<int64_t> backward_layers;  ///< empty: no backward
  /// The backward of attention comes before the experts' forward.
  bool attention_released_early = false;
};

/// All pieces, also those that a layer or chunk does not have, in their order.
std::vector<Piece> piece_order(const CombinedChunks& chunks);

}  // namespace estimator
