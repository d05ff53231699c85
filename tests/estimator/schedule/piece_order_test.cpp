#include "estimator/schedule/piece_order.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

using enum PieceKind;

Piece forward(PieceKind kind, int64_t layer = 0) { return {.layer = layer, .kind = kind}; }
Piece backward(PieceKind kind, int64_t layer = 0) {
  return {.is_backward = true, .layer = layer, .kind = kind};
}

// TransformerLayerSchedulePlan.run() in megatron/core/models/common/model_chunk_schedule_plan.py:
//   comm_stream: combine_bwd       | dispatch_fwd->dispatch_bwd  | combine_fwd
//   comp_stream: pre_dispatch_fwd  | mlp_bwd->mlp_bwd_dw->mlp_fwd| pre_dispatch_bwd
TEST(PieceOrder, OfOneLayerHasTheForwardBetweenThePiecesOfTheBackward) {
  EXPECT_EQ(piece_order({.forward_layers = 1, .backward_layers = 1}),
            (std::vector<Piece>{forward(kBegin),
                                backward(kEnd),
                                backward(kPrediction),
                                backward(kCombine),
                                forward(kAttention),
                                backward(kMlp),
                                forward(kDispatch),
                                backward(kMlpWeights),
                                backward(kDispatch),
                                forward(kMlp),
                                forward(kCombine),
                                backward(kAttention),
                                forward(kPrediction),
                                backward(kAttentionWeights),
                                forward(kEnd),
                                backward(kBegin)}));
}

TEST(PieceOrder, HasTheBackwardOfAttentionBeforeTheExpertsForwardWhereItIsReleasedEarly) {
  const auto order =
      piece_order({.forward_layers = 1, .backward_layers = 1, .attention_released_early = true});
  EXPECT_EQ(order[9], backward(kAttention));
  EXPECT_EQ(order[10], forward(kMlp));
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
  EXPECT_EQ(layers_of(chunks, true, kMlp), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(layers_of(chunks, false, kMlp), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(layers_of(chunks, true, kAttentionWeights), (std::vector<int64_t>{1, 0}));
  const auto order = piece_order(chunks);
  EXPECT_EQ(order[order.size() - 3], backward(kAttentionWeights, 0));
}

TEST(PieceOrder, OfAForwardAloneHasNoPieceOfABackward) {
  for (const Piece& piece : piece_order({.forward_layers = 2, .backward_layers = {}})) {
    EXPECT_FALSE(piece.is_backward);
  }
}

}  // namespace
}  // namespace estimator
