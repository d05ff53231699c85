// What layers of multi-token prediction keep, hold and ask of other ranks, worked out by hand.
#include <gtest/gtest.h>

#include "tests/sim/rank/executed_rank.h"

namespace sim::prediction_formulas {  // where the formulas' letters mean its sizes
namespace {

using estimator::CollectiveKind;
using estimator::Direction;
using estimator::GroupKind;
using estimator::Json;
using estimator::RankProfile;

constexpr int64_t s = 512, b = 4, h = 1024, a = 16, v = 1024;

Json predicting(int64_t layers, Json changes = Json::object()) {
  changes["model"]["mtp_num_layers"] = layers;
  changes["model"]["position_embedding"] = "none";
  return changes;
}

RankProfile executed(int64_t layers, const Json& changes = Json::object(), int64_t rank = 0) {
  return execute(gpt_plan(predicting(layers, changes)), rank);
}

int64_t calls(const RankProfile& profile,
              GroupKind group,
              CollectiveKind kind,
              Direction direction) {
  int64_t count = 0;
  for (const auto& record : profile.collectives) {
    const bool is_it = record.call.group == group && record.call.kind == kind;
    if (is_it && record.direction == direction) count += record.count;
  }
  return count;
}

// A layer keeps s b h (34 + 5 a s / h) and 16 s b (activation_memory_test.cpp). Around it: the
// embeddings of the tokens and the mask of their dropout (3 s b h), what the norm of hidden states
// reads (2), both together (4), what the final norm reads (2), and its output among those of all
// depths (2); three norms' statistics and the tokens (8 s b each). Of the loss: the softmax in
// fp32, labels (8 s b) and whether they are here (1), the mask of the loss and the loss (4 each),
// and the number of tokens, a block.
TEST(Predictions, KeepALayerWhatTheyJoinAndTheirLoss) {
  const auto kept = [](int64_t layers) {
    return executed(layers).micro_batches.activation_bytes.value();
  };
  EXPECT_EQ(
      kept(2) - kept(1),
      s * b * h * (34 + 13) + 5 * a * s * s * b + 4 * s * b * v + (16 + 4 * 8 + 17) * s * b + 512);
}

// A layer that is recomputed keeps hidden states and embeddings alone, not what joins them.
TEST(Predictions, KeepHiddenStatesAndEmbeddingsUnderFullRecompute) {
  const auto kept = [](int64_t layers) {
    return executed(layers, {{"training", {{"recompute", "full"}}}})
        .micro_batches.activation_bytes.value();
  };
  EXPECT_EQ(kept(2) - kept(1), s * b * h * 7 + 4 * s * b * v + (8 + 17) * s * b + 512);
}

// Beside the layer's two gathers and two reduce-scatters: the embeddings are scattered, the
// projection gathers its input and its output, the output layer its input; the cross-entropy sums
// three times, and the largest scores and their rows are gathered.
TEST(Predictions, GatherTheirProjectionAndTheirScores) {
  const Json tensor = {{"cluster", {{"gpus_per_node", 2}}},
                       {"parallelism", {{"tensor", 2}, {"sequence_parallel", true}}}};
  const RankProfile one = executed(1, tensor), two = executed(2, tensor);
  const auto more = [&](CollectiveKind kind) {
    const auto of = [&](const RankProfile& profile) {
      return calls(profile, GroupKind::kTensor, kind, Direction::kForward) /
             profile.micro_batches.total;
    };
    return of(two) - of(one);
  };
  EXPECT_EQ(more(CollectiveKind::kAllGather), 2 + 2 + 1 + 2);
  EXPECT_EQ(more(CollectiveKind::kReduceScatter), 2 + 1);
  EXPECT_EQ(more(CollectiveKind::kAllReduce), 3);
}

// Norms of weight and bias: two of the layer and three around it. Matrices with biases: 3 h x h and
// h x h of attention, 4 h x h and h x 4 h of the MLP, and without one h x 2 h of the projection.
// The last of two stages has a layer, the final norm, an output layer, and a copy of the embedding.
TEST(Predictions, OfAPipelineCopyTheEmbeddingAndSumItsGradient) {
  constexpr int64_t kMatrices = (3 + 1 + 4 + 4) * h * h + (3 + 1 + 4 + 1) * h, kNorm = 2 * h;
  for (const bool tied : {false, true}) {
    const Json stages = {{"cluster", {{"gpus_per_node", 2}}},
                         {"parallelism", {{"pipeline", 2}}},
                         {"model", {{"tie_embeddings", tied}}}};
    const RankProfile last = executed(1, stages, 1);
    EXPECT_EQ(last.parameters.count,
              2 * (kMatrices + 2 * kNorm) + 3 * kNorm + 2 * h * h + kNorm + 2 * v * h);
    for (const RankProfile& rank : {last, executed(1, stages, 0)}) {
      EXPECT_EQ(
          calls(
              rank, GroupKind::kEmbedding, CollectiveKind::kAllReduce, Direction::kReduceGradients),
          1);
    }
  }
}

}  // namespace
}  // namespace sim::prediction_formulas
