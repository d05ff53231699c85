// Stages that are composed from pieces whose memory and time are formulas.
#include "estimator/compose/composed_stage.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "estimator/base/fields.h"
#include "estimator/compose/composer.h"
#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/compose/piece_plans.h"

namespace estimator {
namespace {

/// A stage that holds 100 + 10 L bytes, 3 + 2 L for each micro-batch in flight, and of its state 12
/// L for the optimizer; the allocator loses a twentieth of what is in flight.
ExecutedPiece piece(StagePlace place, int64_t layers, int64_t in_flight) {
  ExecutedPiece piece{
      .run = {.place = place, .layers = layers, .in_flight = in_flight, .plan = piece_base()}};
  const int64_t flying = in_flight * (3 + 2 * layers);
  const int64_t peak = 100 + 10 * layers + flying;
  PhaseRecord phase;
  phase.name = "iteration_1.forward_backward";
  phase.peak = {peak, peak + flying / 20};
  // While it is built, its 9 L bytes of weights exist twice.
  PhaseRecord build;
  build.name = "build_model";
  build.peak = {18 * layers, 18 * layers};
  build.after = {9 * layers, 9 * layers};
  piece.profile.phases = {build, phase};
  piece.profile.model_state =
      ModelStateRecord{.master_weight_bytes = 4 * layers, .optimizer_state_bytes = 8 * layers};
  return piece;
}

PieceSet pieces() {
  std::vector<ExecutedPiece> all;
  for (const int64_t layers : kPieceLayers) {
    all.push_back(piece(StagePlace::kFirst, layers, 4));
    all.push_back(piece(StagePlace::kMiddle, layers, 3));
    all.push_back(piece(StagePlace::kMiddle, layers, 2));
    all.push_back(piece(StagePlace::kLast, layers, 1));
  }
  return PieceSet(std::move(all));
}

TEST(ComposedStage, HoldsMoreLayersAndMoreInFlight) {
  const StageWish wish{.place = StagePlace::kMiddle, .layers = {5}, .in_flight = 7};
  // 100 + 10 x 5 + 7 x (3 + 2 x 5)
  EXPECT_EQ(pieces().memory(piece_base(), wish).allocated_bytes, 241);
}

TEST(ComposedStage, TakesItsSlopeFromTheMiddleAtBothEndsOfThePipeline) {
  for (const StagePlace place : {StagePlace::kFirst, StagePlace::kLast}) {
    const StageWish wish{.place = place, .layers = {12}, .in_flight = 6};
    EXPECT_EQ(pieces().memory(piece_base(), wish).allocated_bytes, 100 + 120 + 6 * 27);
  }
}

// The first stage keeps 5 bytes more for each micro-batch: of a pipeline of four it has 4 in
// flight, of a pipeline of two 2.
TEST(ComposedStage, KeepsTheMasksOfTheEmbeddingForEachMicroBatch) {
  std::vector<ExecutedPiece> all;
  const auto with_masks = [](int64_t layers, int64_t in_flight) {
    ExecutedPiece first = piece(StagePlace::kFirst, layers, in_flight);
    first.profile.phases.back().peak.allocated_bytes += 5 * in_flight;
    return first;
  };
  for (const int64_t layers : kPieceLayers) {
    all.push_back(with_masks(layers, 4));
    all.push_back(piece(StagePlace::kMiddle, layers, 3));
    all.push_back(piece(StagePlace::kMiddle, layers, 2));
    all.push_back(piece(StagePlace::kLast, layers, 1));
  }
  all.push_back(with_masks(kPieceLayers.front(), 2));
  const StageWish wish{.place = StagePlace::kFirst, .layers = {12}, .in_flight = 16};
  // 100 + 10 x 12 + 16 x (3 + 2 x 12 + 5)
  EXPECT_EQ(PieceSet(std::move(all)).memory(piece_base(), wish).allocated_bytes, 732);
}

TEST(ComposedStage, SharesTheOptimizerAmongMoreDataRanks) {
  const Plan plan = piece_base({{"cluster", {{"nodes", 4}}}});  // 8 data ranks, not 2
  const StageWish wish{.place = StagePlace::kMiddle, .layers = {5}, .in_flight = 7};
  // 12 x 5 bytes of two ranks are a quarter of them: 45 bytes less.
  EXPECT_EQ(pieces().memory(plan, wish).allocated_bytes, 241 - 45);
}

/// The second of four stages with two chunks of so many layers.
StageMemory memory_of_two_chunks(const std::vector<int64_t>& layers) {
  const Plan plan = piece_base({{"parallelism", {{"virtual_stages", 2}}}});
  return pieces().memory(plan,
                         {.place = StagePlace::kMiddle,
                          .chunks = {StagePlace::kMiddle, StagePlace::kMiddle},
                          .layers = layers,
                          .in_flight = 9,
                          .stage = 1,
                          .micro_batches = 16});
}

TEST(ComposedStage, HoldsChunksNotStagesInFlightWithVirtualStages) {
  // 100 + 10 x 6 + 9 x (3 + 2 x 3)
  EXPECT_EQ(memory_of_two_chunks({3, 3}).allocated_bytes, 241);
}

TEST(ComposedStage, HoldsMostOfTheFirstChunkInFlight) {
  // 100 + 10 x 6 + 8 x (3 + 2 x 4) + 3 + 2 x 2
  EXPECT_EQ(memory_of_two_chunks({4, 2}).allocated_bytes, 255);
}

TEST(ComposedStage, MayNeedLessWhereItsChunksDiffer) {
  EXPECT_EQ(memory_of_two_chunks({3, 3}).least_allocated_bytes, 241);
  EXPECT_EQ(memory_of_two_chunks({4, 2}).least_allocated_bytes, 250);  // 2 % less
}

// Pieces have eight micro-batches. Each has 128 tokens and labels, and messages of 1,000 bytes.
TEST(ComposedStage, OfTorchsPipelinesHasBuffersForEachMicroBatch) {
  std::vector<ExecutedPiece> all;
  for (const int64_t layers : kPieceLayers) {
    all.push_back(piece(StagePlace::kMiddle, layers, 3));
    all.push_back(piece(StagePlace::kMiddle, layers, 2));
    all.push_back(piece(StagePlace::kLast, layers, 1));
  }
  for (ExecutedPiece& sender : all) {
    CollectiveRecord send{.direction = Direction::kForward};
    send.call = {.kind = CollectiveKind::kSend, .group = GroupKind::kPipeline, .bytes = 1000};
    sender.profile.collectives = {send};
  }
  const PieceSet pieces(std::move(all));
  const auto memory = [&](const std::vector<StagePlace>& chunks, int64_t buffered) {
    const std::vector<int64_t> layers(chunks.size(), 4);
    return pieces.memory(piece_base({{"parallelism", {{"virtual_stages", 2}}}}),
                         {.place = chunks.back(),
                          .chunks = chunks,
                          .layers = layers,
                          .in_flight = 1,
                          .stage = 3,
                          .micro_batches = 16,
                          .buffered = buffered});
  };
  const auto bytes = [&](const std::vector<StagePlace>& chunks, int64_t buffered) {
    return memory(chunks, buffered).allocated_bytes;
  };
  using enum StagePlace;
  constexpr int64_t kTokens = 2 * 8 * 128, kMessage = 1000;
  EXPECT_EQ(bytes({kLast}, 20) - bytes({kLast}, 0), 12 * (kTokens + kMessage));
  EXPECT_EQ(bytes({kMiddle}, 20) - bytes({kMiddle}, 0), 12 * (kTokens + 2 * kMessage));
  EXPECT_EQ(bytes({kMiddle, kLast}, 20) - bytes({kMiddle, kLast}, 0),
            12 * (kTokens + kMessage) + 20 * 2 * kMessage);
  // 10 % less, of several chunks alone.
  const StageMemory one = memory({kLast}, 20), two = memory({kMiddle, kLast}, 20);
  EXPECT_EQ(one.least_allocated_bytes, one.allocated_bytes);
  EXPECT_EQ(two.least_allocated_bytes, (90 * two.allocated_bytes + 50) / 100);
}

Plan torch_plan(int64_t zero_stage, int64_t chunks) {
  return resolve_plan(
      Json{{"model", {{"preset", "llama3-8b"}, {"num_layers", 48}}},
           {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}, {"gpus_per_node", 8}}},
           {"parallelism",
            {{"pipeline", 4}, {"zero_stage", zero_stage}, {"virtual_stages", chunks}}},
           {"training",
            {{"framework", "torchtitan"}, {"micro_batch_size", 1}, {"global_batch_size", 64}}}},
      {});
}

/// A stage with so many chunks, which have twelve layers together.
int64_t bytes_of_torchs_chunks(int64_t zero_stage, int64_t chunks) {
  std::vector<ExecutedPiece> all;
  for (const int64_t layers : kPieceLayers) {
    for (const int64_t in_flight : {3, 2}) {
      all.push_back(piece(StagePlace::kMiddle, layers, in_flight));
      all.back().profile.phases.back().peak.allocated_bytes += 1L << 34;
    }
  }
  const auto count = static_cast<std::size_t>(chunks);
  return PieceSet(std::move(all))
      .memory(torch_plan(zero_stage, chunks),
              {.place = StagePlace::kMiddle,
               .chunks = std::vector(count, StagePlace::kMiddle),
               .layers = std::vector<int64_t>(count, 12 / chunks),
               .in_flight = 1,
               .micro_batches = 16})
      .allocated_bytes;
}

// Of one layer of Llama-3 8B: queries and the output, keys and values, three products of 14,336
// and two norms, in 16 bits.
TEST(ComposedStage, OfTorchsPipelinesGathersTheParametersOfThreeChunks) {
  constexpr int64_t kHidden = 4096;
  constexpr int64_t kLayer =
      2 * (2 * kHidden * kHidden + 2 * kHidden * 1024 + 3 * kHidden * 14336 + 2 * kHidden);
  EXPECT_EQ(bytes_of_torchs_chunks(3, 3), bytes_of_torchs_chunks(2, 3));
  EXPECT_EQ(bytes_of_torchs_chunks(3, 4) - bytes_of_torchs_chunks(2, 4), 3 * kLayer);
}

TEST(ComposedStage, HoldsTheWeightsOfOneChunkTwiceWhileItIsBuilt) {
  const auto peak = [&](const std::vector<int64_t>& layers) {
    return pieces()
        .memory(piece_base(), {.place = StagePlace::kMiddle, .layers = layers, .in_flight = 0})
        .allocated_bytes;
  };
  EXPECT_EQ(peak({200}), 2 * 9 * 200);
  EXPECT_EQ(peak({100, 100}), 9 * 200 + 9 * 100);
  EXPECT_EQ(peak({20, 20, 20, 20, 20, 20, 20, 20, 20, 20}), 100 + 10 * 200);  // an iteration
}

TEST(ComposedStage, LosesMoreToTheAllocatorWithMoreInFlight) {
  const auto lost = [&](int64_t in_flight) {
    const StageMemory memory = pieces().memory(
        piece_base(), {.place = StagePlace::kMiddle, .layers = {8}, .in_flight = in_flight});
    return memory.reserved_bytes - memory.allocated_bytes;
  };
  EXPECT_NEAR(static_cast<double>(lost(40)), 38, 3);  // a twentieth of 40 x (3 + 2 x 8)
  EXPECT_GT(lost(40), lost(8));
}

TEST(ComposedStage, LosesLittleForEachLayerBeyondThoseOfItsLargerPiece) {
  std::vector<ExecutedPiece> all;
  for (const int64_t layers : kPieceLayers) {
    for (const int64_t in_flight : {3, 2}) {
      all.push_back(piece(StagePlace::kMiddle, layers, in_flight));
      MemoryReading& peak = all.back().profile.phases.back().peak;
      peak.reserved_bytes = peak.allocated_bytes + (layers == kPieceLayers.back() ? 100 : 0);
    }
  }
  const StageMemory memory =
      PieceSet(std::move(all))
          .memory(piece_base(), {.place = StagePlace::kMiddle, .layers = {800}, .in_flight = 30});
  EXPECT_EQ(memory.allocated_bytes, 100 + 10 * 800 + 30 * (3 + 2 * 800));
  // 100 for 8 layers, and for each of the 792 others 6 % of the 10 + 2 x 3 bytes that it adds.
  EXPECT_EQ(memory.reserved_bytes - memory.allocated_bytes, 860);
}

/// 1 + L seconds forward, twice that backward; 10 + L at the end of a step.
StageTime seconds_of_layers(int64_t layers) {
  StageTime time;
  time.chunks.resize(1);
  time.chunks[0].forward.compute_seconds = 1.0 + static_cast<double>(layers);
  time.chunks[0].backward.compute_seconds = 2 * time.chunks[0].forward.compute_seconds;
  time.chunks[0].reduction.end_seconds = 0.5 * static_cast<double>(layers);
  time.step_end.compute_seconds = 10.0 + static_cast<double>(layers);
  time.send_forward_bytes = 7;
  return time;
}

TEST(ComposedStage, TakesAsLongAsItsChunksAndEndsItsStepOnce) {
  PricedPieces priced;
  for (const StagePlace place : {StagePlace::kFirst, StagePlace::kMiddle}) {
    priced.times[place] = {seconds_of_layers(kPieceLayers[0]), seconds_of_layers(kPieceLayers[1])};
  }
  const StageTime time = priced.time({.place = StagePlace::kFirst,
                                      .chunks = {StagePlace::kFirst, StagePlace::kMiddle},
                                      .layers = {3, 4},
                                      .in_flight = 1});
  ASSERT_EQ(time.chunks.size(), 2u);
  EXPECT_DOUBLE_EQ(time.chunks[0].forward.compute_seconds, 4);
  EXPECT_DOUBLE_EQ(time.chunks[1].backward.compute_seconds, 10);
  EXPECT_DOUBLE_EQ(time.chunks[1].reduction.end_seconds, 2);
  EXPECT_DOUBLE_EQ(time.step_end.compute_seconds, 17);
  EXPECT_EQ(time.send_forward_bytes, 7);
}

// A piece of the first stage reduces beside its last backward; as the first of several chunks when
// all backwards have ended, and as a later one beside those of the chunks before it.
TEST(ComposedStage, ReducesTheFirstOfSeveralChunksAtTheEnd) {
  PricedPieces priced;
  const auto reducing = [](int64_t layers) {
    StageTime time = seconds_of_layers(layers);
    time.chunks[0].reduction.beside_seconds = 2;
    time.chunks[0].reduction.backward_added_seconds = 1;
    return time;
  };
  for (const StagePlace place : {StagePlace::kFirst, StagePlace::kMiddle}) {
    priced.times[place] = {reducing(kPieceLayers[0]), reducing(kPieceLayers[1])};
  }
  StageWish wish{.place = StagePlace::kFirst,
                 .chunks = {StagePlace::kFirst, StagePlace::kMiddle},
                 .layers = {4, 4},
                 .in_flight = 1,
                 .overlaps_reduction = true};
  const StageTime time = priced.time(wish);
  EXPECT_DOUBLE_EQ(time.chunks[0].reduction.beside_seconds, 0);
  EXPECT_DOUBLE_EQ(time.chunks[0].reduction.backward_added_seconds, 0);
  EXPECT_DOUBLE_EQ(time.chunks[0].reduction.end_seconds, 2 + 2);
  EXPECT_DOUBLE_EQ(time.chunks[1].reduction.beside_seconds, 2 + 2);
  EXPECT_DOUBLE_EQ(time.chunks[1].reduction.end_seconds, 0);
  wish.chunks = {StagePlace::kFirst};
  wish.layers = {4};
  EXPECT_DOUBLE_EQ(priced.time(wish).chunks[0].reduction.beside_seconds, 2);
}

TEST(ComposedStage, TakesNoLessForAChunkOfOneLayerThanHalfOfTwo) {
  PricedPieces priced;
  const auto seconds_of_busy_host = [](int64_t layers) {
    StageTime time = seconds_of_layers(layers);
    time.chunks[0].forward.compute_seconds -= 1.5;
    return time;
  };
  priced.times[StagePlace::kMiddle] = {seconds_of_busy_host(kPieceLayers[0]),
                                       seconds_of_busy_host(kPieceLayers[1])};
  const StageTime time =
      priced.time({.place = StagePlace::kMiddle, .chunks = {StagePlace::kMiddle}, .layers = {1}});
  EXPECT_DOUBLE_EQ(time.chunks[0].forward.compute_seconds, 0.75);
  EXPECT_DOUBLE_EQ(time.chunks[0].backward.compute_seconds, 4);
}

TEST(ComposedStage, SendsFromTheLastStageToTheFirstOneWithVirtualStages) {
  PricedPieces priced;
  for (const StagePlace place : {StagePlace::kMiddle, StagePlace::kLast}) {
    priced.times[place] = {seconds_of_layers(kPieceLayers[0]), seconds_of_layers(kPieceLayers[1])};
  }
  for (StageTime& last : priced.times[StagePlace::kLast]) last.send_forward_bytes = 0;
  StageWish wish{.place = StagePlace::kLast, .chunks = {StagePlace::kLast}, .layers = {4}};
  EXPECT_EQ(priced.time(wish).send_forward_bytes, 0);
  wish.chunks = {StagePlace::kMiddle, StagePlace::kLast};
  wish.layers = {2, 2};
  EXPECT_EQ(priced.time(wish).send_forward_bytes, 7);
}

TEST(ComposedStage, IsWishedForWithThePlacesOfItsChunks) {
  const Plan plan = piece_base({{"parallelism", {{"virtual_stages", 2}}}});
  const std::vector<StageWish> wishes = stage_wishes(plan);
  ASSERT_EQ(wishes.size(), 4u);
  EXPECT_EQ(wishes[0].chunks, (std::vector{StagePlace::kFirst, StagePlace::kMiddle}));
  EXPECT_EQ(wishes[3].chunks, (std::vector{StagePlace::kMiddle, StagePlace::kLast}));
  EXPECT_EQ(wishes[1].layers, (std::vector<int64_t>{3, 3}));
}

TEST(Pieces, AreStagesOfTwoSizesOrTheOneStageThatThereIs) {
  const std::vector<PieceRun> runs = piece_runs(piece_base());
  ASSERT_EQ(runs.size(), 9u);
  EXPECT_EQ(runs.back().place, StagePlace::kFirst);
  EXPECT_EQ(runs.back().in_flight, 2);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(runs[i].in_flight, 4 - static_cast<int64_t>(i % 4));
    EXPECT_EQ(runs[i].layers, kPieceLayers[i / 4]);
    EXPECT_EQ(runs[i].plan.model.num_layers, 4 * kPieceLayers[i / 4]);
  }
  EXPECT_EQ(runs[2].place, StagePlace::kMiddle);
  const std::vector<PieceRun> alone = piece_runs(piece_base({{"parallelism", {{"pipeline", 1}}}}));
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].place, StagePlace::kOnly);
  EXPECT_EQ(alone[0].layers, 24);
}

TEST(Pieces, HaveAsManyLayersInAllStagesWhereTheFrameworkDividesByCost) {
  for (const PieceRun& run :
       piece_runs(piece_base({{"training", {{"framework", "megatron-deepspeed"}}}}))) {
    for (const int64_t layers : run.plan.layers_of_virtual_stages()) EXPECT_EQ(layers, run.layers);
  }
}

TEST(Pieces, AreThoseOfAFamily) {
  const Plan plan = piece_base();
  EXPECT_EQ(family_of(plan), family_of(piece_base({{"parallelism", {{"pipeline", 8}}}})));
  EXPECT_EQ(family_of(plan), family_of(piece_base({{"training", {{"global_batch_size", 128}}}})));
  EXPECT_NE(family_of(plan), family_of(piece_base({{"parallelism", {{"tensor", 2}}}})));
  EXPECT_NE(family_of(plan), family_of(piece_base({{"training", {{"micro_batch_size", 2}}}})));
}

/// 16 GPUs of nanotron without ZeRO, as 8 stages and what is left for data ranks.
Plan replicated(int64_t tensor, const Json& changes = Json::object()) {
  Json tree = {{"cluster", {{"nodes", 2}}},
               {"parallelism", {{"pipeline", 8}, {"tensor", tensor}, {"zero_stage", 0}}},
               {"training", {{"framework", "nanotron"}}}};
  tree.merge_patch(changes);
  return piece_base(tree);
}

// DistributedDataParallel makes its buckets only where there is somebody to reduce with.
TEST(Pieces, HaveOneDataRankWhereReducerBucketsAreMissingWithOne) {
  const auto replicas = [](const Plan& plan) {
    std::set<int64_t> found;
    for (const PieceRun& run : piece_runs(plan)) found.insert(run.plan.replicas());
    return found;
  };
  EXPECT_EQ(replicas(replicated(2)), std::set<int64_t>{1});
  const std::set<int64_t> with_others = replicas(replicated(1));
  ASSERT_FALSE(with_others.empty());
  EXPECT_GE(*with_others.begin(), 2);
  const std::set<int64_t> of_megatron =
      replicas(replicated(2, {{"training", {{"framework", "megatron-lm"}}}}));
  ASSERT_FALSE(of_megatron.empty());
  EXPECT_GE(*of_megatron.begin(), 2);
}

TEST(Pieces, OfPlansWithAndWithoutReducerBucketsAreOfTwoFamilies) {
  const Json one_machine = {{"cluster", {{"nodes", 1}}}};
  EXPECT_NE(family_of(replicated(1)), family_of(replicated(1, one_machine)));
  const Json four_machines = {{"cluster", {{"nodes", 4}}}};
  EXPECT_EQ(family_of(replicated(1)), family_of(replicated(1, four_machines)));
}

TEST(Pieces, BecomeStagesOfOtherDataRanks) {
  PieceRun run{.plan = piece_base()};
  run.plan.parallelism.bucket_elements = 40;
  RankProfile profile;
  CollectiveRecord reduce;
  reduce.call.group = GroupKind::kDataContext;
  reduce.call.group_size = 2;
  reduce.call.bytes = 1000;
  reduce.direction = Direction::kReduceGradients;
  reduce.count = 6;
  profile.collectives = {reduce};
  Plan plan = piece_base({{"cluster", {{"nodes", 4}}}});  // 8 data ranks
  plan.parallelism.bucket_elements = 80;                  // buckets twice as large
  StageRecords stage;
  make_stage_of(run.plan, 1, run, profile, stage);
  EXPECT_EQ(stage.optimizer_share, 1);
  make_stage_of(plan, 3, run, profile, stage);
  EXPECT_EQ(stage.stage, 3);
  EXPECT_EQ(stage.rank, 24);
  EXPECT_EQ(stage.optimizer_share, 0.25);
  EXPECT_EQ(stage.collectives[0].call.group_size, 8);
  EXPECT_EQ(stage.collectives[0].count, 3);
  EXPECT_EQ(stage.collectives[0].call.bytes, 2000);
}

// One dense layer before 24 with experts.
Plan with_a_dense_layer_first() {
  std::vector<int64_t> pattern(25, 1);
  pattern[0] = 0;
  return piece_base({{"model",
                      {{"num_layers", 25},
                       {"num_experts", 4},
                       {"moe_router_topk", 2},
                       {"moe_ffn_hidden_size", 128},
                       {"add_bias_linear", false},
                       {"moe_layer_freq", pattern}}},
                     {"parallelism", {{"layers_per_stage", {7, 6, 6, 6}}}}});
}

TEST(Pieces, HaveDenseLayersBesideTheEmbedding) {
  const Plan plan = with_a_dense_layer_first();
  EXPECT_EQ(obstacle_to_composition(plan), "");
  EXPECT_EQ(stage_wishes(plan)[0].layers, std::vector<int64_t>{6});
  const std::vector<PieceRun> runs = piece_runs(plan);
  EXPECT_EQ(runs[0].layers, kPieceLayers[0]);
  EXPECT_EQ(runs[0].plan.expert_layers_of_stage(0), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(runs[1].plan.expert_layers_of_stage(1), (std::vector<bool>{true, true}));
  EXPECT_EQ(runs.back().plan.expert_layers_of_stage(0), (std::vector<bool>{false, true, true}));
}

/// Products in both directions, and one bucket of gradients that is reduced beside the backward.
void add_work(int64_t layers, RankProfile& profile) {
  profile.micro_batches.total = 8;
  StepOrder& order = profile.order.emplace();
  order.modules = {""};
  order.records = 1;
  const auto add_product = [&](Direction direction) {
    order.events.add({.item = std::ssize(profile.operators), .direction = direction});
    OperatorRecord& product = profile.operators.emplace_back();
    product.name = "aten::mm";
    product.shapes = {{1024 * layers, 4096}, {4096, 4096}};
    product.dtype = "BFloat16";
    product.flops = static_cast<double>(2 * 1024 * layers * 4096 * 4096);
    product.direction = direction;
    product.chunk = 0;
    product.count = 8;
  };
  add_product(Direction::kForward);
  add_product(Direction::kBackward);
  order.events.add({.kind = OrderKind::kRecord, .direction = Direction::kBackward});
  order.events.add(
      {.kind = OrderKind::kWait, .stream = 1, .direction = Direction::kReduceGradients});
  order.events.add(
      {.kind = OrderKind::kCollective, .stream = 1, .direction = Direction::kReduceGradients});
  CollectiveRecord& reduce = profile.collectives.emplace_back();
  reduce.call = {.kind = CollectiveKind::kReduceScatter,
                 .group = GroupKind::kDataContext,
                 .group_size = 2,
                 .dtype = "BFloat16",
                 .bytes = layers << 25};
  reduce.direction = Direction::kReduceGradients;
  reduce.chunk = 0;
  reduce.count = 1;
  add_product(Direction::kBackward);
}

Composer composer_of(const Plan& plan) {
  std::vector<PieceRun> runs = piece_runs(plan);
  std::vector<RankProfile> profiles;
  for (const PieceRun& run : runs) {
    profiles.push_back(piece(run.place, run.layers, run.in_flight).profile);
    add_work(run.layers, profiles.back());
  }
  return {std::move(runs), std::move(profiles), nullptr};
}

std::vector<double> figures(Composer& composer, const Plan& plan) {
  const ComposedPlan memory = composer.compose(plan);
  const StepTime time = composer.time(plan);
  return {static_cast<double>(memory.peak_bytes),
          time.iteration_seconds,
          time.compute_seconds,
          time.bubble_seconds,
          time.exposed_communication_seconds.data};
}

// In both orders, so that each plan finds what the others left.
TEST(Composer, GivesAPlanTheSameFiguresAfterOthersOfItsFamily) {
  std::vector<Plan> plans;
  for (const int64_t nodes : {1, 2, 4}) {
    for (const int64_t stages : {2, 4}) {
      for (const int64_t chunks : {1, 2, 3}) {
        plans.push_back(piece_base(
            {{"cluster", {{"nodes", nodes}}},
             {"parallelism",
              {{"pipeline", stages}, {"virtual_stages", chunks}, {"overlap_grad_reduce", true}}}}));
      }
    }
  }
  Composer ascending = composer_of(plans.front()), descending = composer_of(plans.front());
  std::set<double> steps;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& last = plans[plans.size() - 1 - i];
    EXPECT_EQ(pieces_of(plans[i]), pieces_of(plans.front()));
    Composer alone = composer_of(plans.front()), last_alone = composer_of(plans.front());
    EXPECT_EQ(figures(ascending, plans[i]), figures(alone, plans[i]));
    EXPECT_EQ(figures(descending, last), figures(last_alone, last));
    steps.insert(alone.time(plans[i]).iteration_seconds);
  }
  EXPECT_EQ(steps.size(), plans.size());
}

}  // namespace
}  // namespace estimator
