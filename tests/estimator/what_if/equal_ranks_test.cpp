#include "estimator/what_if/equal_ranks.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

Plan equal_plan(const Json& changes) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "parallelism": {"pipeline": 2},
    "training": {"micro_batch_size": 1, "global_batch_size": 32, "sequence_length": 128}})");
  tree.merge_patch(changes);
  return resolve_plan(tree, {});
}

Plan equal_plan_of_batch(int64_t samples) {
  return equal_plan({{"training", {{"global_batch_size", samples}}}});
}

TEST(EqualRanks, RunAlikeWithMoreMicroBatchesThanThePeakNeeds) {
  EXPECT_EQ(rank_run_key(equal_plan_of_batch(32), 0), rank_run_key(equal_plan_of_batch(64), 0));
  // One micro-batch on each of 4 data ranks: two are never in flight.
  EXPECT_NE(rank_run_key(equal_plan_of_batch(32), 0), rank_run_key(equal_plan_of_batch(4), 0));
}

// Such a stage has buffers for all of its micro-batches.
TEST(EqualRanks, OfTorchsPipelinesHaveAsManyMicroBatches) {
  const auto key = [](int64_t samples) {
    return rank_run_key(
        equal_plan({{"model", {{"tie_embeddings", false}}},
                    {"parallelism", {{"zero_stage", 3}}},
                    {"training", {{"framework", "torchtitan"}, {"global_batch_size", samples}}}}),
        0);
  };
  EXPECT_NE(key(32), key(64));
}

TEST(EqualRanks, AreNotOfAnotherStageOrShard) {
  const Plan plan = equal_plan_of_batch(32);
  EXPECT_NE(rank_run_key(plan, 0), rank_run_key(plan, 4));
  EXPECT_NE(rank_run_key(plan, 0), rank_run_key(equal_plan({{"parallelism", {{"tensor", 2}}}}), 0));
}

TEST(EqualRanks, RunAlikeAtAnotherPrice) {
  const Plan dear = equal_plan({{"cluster", {{"usd_per_gpu_hour", 9.5}}}});
  EXPECT_EQ(rank_run_key(equal_plan_of_batch(32), 0), rank_run_key(dear, 0));
}

// 4 of 8 micro-batches ran with 12 kernels: 3 for each, so 48 for 16. The optimizer's stay.
TEST(EqualRanks, CountForTheMicroBatchesOfTheirPlan) {
  RankProfile profile;
  profile.micro_batches = {.total = 8, .executed = 4, .most_in_flight = 2};
  OperatorRecord forward;
  forward.direction = Direction::kForward;
  forward.count = 24;
  forward.executed_count = 12;
  OperatorRecord step = forward;
  step.direction = Direction::kOptimizerStep;
  step.count = 12;
  profile.operators = {forward, step};
  CollectiveRecord call;
  call.direction = Direction::kBackward;
  call.executed_count = 4;
  profile.collectives = {call};
  const Plan plan = equal_plan_of_batch(64);  // 16 on each of 4 data ranks
  const RankProfile as_planned = as_rank_of(plan, profile);
  EXPECT_EQ(as_planned.micro_batches.total, 16);
  EXPECT_EQ(as_planned.operators[0].count, 48);
  EXPECT_EQ(as_planned.operators[1].count, 12);
  EXPECT_EQ(as_planned.collectives[0].count, 16);
  EXPECT_EQ(as_planned.plan.json(), to_json(plan));
}

}  // namespace
}  // namespace estimator
