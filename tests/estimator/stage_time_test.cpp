#include "estimator/stage_time.h"

#include <gtest/gtest.h>

#include "estimator/communication_time.h"
#include "estimator/units.h"
#include "test_plans.h"

namespace estimator {
namespace {

StageTime time_of(const Plan& plan, const RankProfile& profile) {
  return stage_time(profile, {.gpu = gpu_of(plan)}, ParallelLayout(plan), fabric_of(plan));
}

CollectiveCall call_of(CollectiveKind kind, GroupKind group, int64_t group_size, int64_t bytes) {
  CollectiveCall call;
  call.kind = kind;
  call.group = group;
  call.group_size = group_size;
  call.bytes = bytes;
  return call;
}

double seconds_of(const Plan& plan, const CollectiveCall& call) {
  return collective_seconds(call, ParallelLayout(plan).group(call.group, 0), fabric_of(plan));
}

TEST(StageTime, DividesRecordsByThePlansMicroBatches) {
  const Plan plan = pipeline_plan();  // 8 micro-batches
  const StageTime time = time_of(plan, profile_of(plan, 0, 1e-3, 2e-3));
  EXPECT_NEAR(time.forward.compute_seconds, 1e-3, 1e-12);
  EXPECT_NEAR(time.backward.compute_seconds, 2e-3, 1e-12);
}

TEST(StageTime, CountsRecomputeAsBackwardAndTheOptimizerOnce) {
  const Plan plan = pipeline_plan();
  RankProfile profile = profile_of(plan, 0, 1e-3, 2e-3);
  profile.operators.push_back(kernels(Direction::kRecompute, 8 * 1e-3));
  profile.operators.push_back(kernels(Direction::kOptimizerStep, 5e-3));
  profile.operators.push_back(kernels(Direction::kReduceGradients, 1e-3));
  const StageTime time = time_of(plan, profile);
  EXPECT_NEAR(time.backward.compute_seconds, 3e-3, 1e-12);
  EXPECT_NEAR(time.step_end.compute_seconds, 6e-3, 1e-12);
}

// 100 MB take longer than their launch, and than the host's 10 us; 1,000 empty kernels do not.
TEST(StageTime, IsTheHostsWhereTheHostIsSlowerThanTheGpu) {
  const Plan plan = small_plan();  // one micro-batch
  RankProfile profile = profile_of(plan, 0, 0, 0);
  OperatorRecord large = kernels(Direction::kForward, 0);
  large.bytes = 1e8;
  large.count = 100;
  profile.operators = {large};
  const double gpu_seconds = time_of(plan, profile).forward.compute_seconds;
  EXPECT_GT(gpu_seconds, 100 * 10e-6);
  OperatorRecord empty = kernels(Direction::kForward, 10e-3);
  EXPECT_EQ(empty.count, 1000);
  profile.operators = {empty};
  EXPECT_NEAR(time_of(plan, profile).forward.compute_seconds, 10e-3, 1e-9);
  profile.operators = {large, empty};  // 4 us each on the GPU, 10 us each on the host
  EXPECT_NEAR(
      time_of(plan, profile).forward.compute_seconds, std::max(gpu_seconds + 4e-3, 11e-3), 1e-9);
}

TEST(StageTime, PutsTensorCommunicationIntoItsDirection) {
  const Plan plan = small_plan({{"parallelism", {{"tensor", 8}}}});
  const CollectiveCall call = call_of(CollectiveKind::kAllReduce, GroupKind::kTensor, 8, 64 * kMiB);
  RankProfile profile = profile_of(plan, 0);
  profile.collectives.push_back(collectives(Direction::kForward, call, 8 * 4));  // 8 micro-batches
  const StageTime time = time_of(plan, profile);
  EXPECT_NEAR(time.forward.communication_seconds.tensor, 4 * seconds_of(plan, call), 1e-12);
  EXPECT_EQ(time.backward.communication_seconds.tensor, 0);
}

TEST(StageTime, TellsSendsApartByTheirPeerAndCountsNoTimeForThem) {
  const Plan plan = pipeline_plan();
  CollectiveCall to_next = call_of(CollectiveKind::kSend, GroupKind::kPipeline, 4, 1000);
  to_next.peer = 2;
  CollectiveCall to_previous = call_of(CollectiveKind::kSend, GroupKind::kPipeline, 4, 500);
  to_previous.peer = 0;
  CollectiveCall receive = call_of(CollectiveKind::kRecv, GroupKind::kPipeline, 4, 1000);
  receive.peer = 0;
  RankProfile profile = profile_of(plan, 1);
  profile.collectives = {collectives(Direction::kForward, to_next, 8),
                         collectives(Direction::kBackward, to_previous, 8),
                         collectives(Direction::kForward, receive, 8)};
  const StageTime time = time_of(plan, profile);
  EXPECT_EQ(time.send_forward_bytes, 1000);
  EXPECT_EQ(time.send_backward_bytes, 500);
  EXPECT_EQ(sum_of(time.forward.communication_seconds), 0);
}

TEST(StageTime, CollectsGradientBucketsAndParameterGathers) {
  const Plan plan = small_plan();
  const auto reduce =
      call_of(CollectiveKind::kReduceScatter, GroupKind::kDataContext, 8, 160 * kMiB);
  const auto gather = call_of(CollectiveKind::kAllGather, GroupKind::kDataContext, 8, 80 * kMiB);
  RankProfile profile = profile_of(plan, 0);
  profile.collectives = {collectives(Direction::kReduceGradients, reduce, 5),
                         collectives(Direction::kOptimizerStep, gather, 3)};
  profile.collectives[0].overlappable = true;
  const StageTime time = time_of(plan, profile);
  EXPECT_NEAR(time.reduce_gradients.sum_seconds, 5 * seconds_of(plan, reduce), 1e-12);
  EXPECT_EQ(time.reduce_gradients.buckets, 5);
  EXPECT_TRUE(time.reduce_gradients.overlappable);
  EXPECT_NEAR(time.gather_parameters.sum_seconds, 3 * seconds_of(plan, gather), 1e-12);
  EXPECT_FALSE(time.gather_parameters.overlappable);
  EXPECT_EQ(sum_of(time.step_end.communication_seconds), 0);
}

TEST(StageTime, LeavesTheGradientNormToTheEndOfTheStep) {
  const Plan plan = pipeline_plan();
  const auto norm = call_of(CollectiveKind::kAllReduce, GroupKind::kModel, 4, 4);
  RankProfile profile = profile_of(plan, 0);
  profile.collectives = {collectives(Direction::kOptimizerStep, norm, 1)};
  EXPECT_GT(sum_of(time_of(plan, profile).step_end.communication_seconds), 0);
}

TEST(BucketTime, WithoutOverlapIsAllExposed) {
  const BucketTime buckets{.sum_seconds = 10, .buckets = 5, .overlappable = false};
  EXPECT_DOUBLE_EQ(buckets.exposed_seconds(100), 10);
}

TEST(BucketTime, ThatHidesLeavesItsLastBucket) {
  const BucketTime buckets{.sum_seconds = 10, .buckets = 5, .overlappable = true};
  EXPECT_DOUBLE_EQ(buckets.exposed_seconds(100), 2);
}

TEST(BucketTime, ThatIsLongerThanTheBackwardSticksOut) {
  const BucketTime buckets{.sum_seconds = 10, .buckets = 5, .overlappable = true};
  EXPECT_DOUBLE_EQ(buckets.exposed_seconds(3), 2 + 5);
}

TEST(BucketTime, OfOneBucketHidesNothing) {
  const BucketTime buckets{.sum_seconds = 10, .buckets = 1, .overlappable = true};
  EXPECT_DOUBLE_EQ(buckets.exposed_seconds(100), 10);
}

TEST(BucketTime, OfNoBucketsIsNothing) { EXPECT_EQ(BucketTime{}.exposed_seconds(1), 0); }

}  // namespace
}  // namespace estimator
