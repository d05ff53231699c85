#include "estimator/schedule/piece_order.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

Piece forward(PieceKind kind, int64_t layer = 0) { return {.layer = layer, .kind = kind}; }
Piece backward(PieceKind kind, int64_t layer = 0) {
  return {.is_backward = true, .layer = layer, .kind = kind};
}

// TransformerLayerSchedulePlan.run() in megatron/core/models/common/model_chunk_schedule_plan.py:
//   comm_stream: combine_bwd       | dispatch_fwd->dispatch_bwd  | combine_fwd
//   comp_stream: pre_dispatch_fwd  | mlp_bwd->mlp_bwd_dw->mlp_fwd| pre_dispatch_bwd
TEST(PieceOrder, OfOneLayerHasTheForwardBetweenThePiecesOfTheBackward) {
  EXPECT_EQ(piece_order({.forward_layers = 1, .backward_layers = 1}),
            (std::vector<Piece>{forward(PieceKind::kBegin),
                                backward(PieceKind::kEnd),
                                backward(PieceKind::kPrediction),
                                backward(PieceKind::kCombine),
                                forward(PieceKind::kAttention),
                                backward(PieceKind::kMlp),
                                forward(PieceKind::kDispatch),
                                backward(PieceKind::kMlpWeights),
                                backward(PieceKind::kDispatch),
                                forward(PieceKind::kMlp),
                                forward(PieceKind::kCombine),
                                backward(PieceKind::kAttention),
                                forward(PieceKind::kPrediction),
                                backward(PieceKind::kAttentionWeights),
                                forward(PieceKind::kEnd),
                                backward(PieceKind::kBegin)}));
}

TEST(PieceOrder, HasTheBackwardOfAttentionBeforeTheExpertsForwardWhereItIsReleasedEarly) {
  const auto order =
      piece_order({.forward_layers = 1, .backward_layers = 1, .attention_released_early = true});
  EXPECT_EQ(order[9], backward(PieceKind::kAttention));
  EXPECT_EQ(order[10], forward(PieceKind::kMlp));
}

std::vector<int64_t> layers_of(const CombinedChunks& chunks, bool is_backward, PieceKind kind) {
  std::vector<int64_t> layers;
  for (const Piece& piece : piece_order(chunks)) {
    if (piece.is_backward == is_backward && piece.kind == kind) layers.push_back(piece.layer);
  }
  return layers;
}

TEST(PieceOrder, RunsBackwardsFromTheLastLayerAndItsOwnRestBeforeThatOfTheForward) {
  const CombinedChunks chunks{.forward_layers = 3, .backward_layers = 2};
  EXPECT_EQ(layers_of(chunks, true, PieceKind::kMlp), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(layers_of(chunks, false, PieceKind::kMlp), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(layers_of(chunks, true, PieceKind::kAttentionWeights), (std::vector<int64_t>{1, 0}));
  const auto order = piece_order(chunks);
  EXPECT_EQ(order[order.size() - 3], backward(PieceKind::kAttentionWeights, 0));
}

TEST(PieceOrder, OfAForwardAloneHasNoPieceOfABackward) {
  for (const Piece& piece : piece_order({.forward_layers = 2, .backward_layers = {}})) {
    EXPECT_FALSE(piece.is_backward);
  }
}

}  // namespace
}  // namespace estimator
