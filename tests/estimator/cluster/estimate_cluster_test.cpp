#include "estimator/cluster/estimate_cluster.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "estimator/base/units.h"
#include "estimator/compute/model_flops.h"
#include "estimator/step/stage_time.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

constexpr int64_t kH100Bytes = 85029027840;               // 79.19 GiB
constexpr int64_t kContextBytes = 648871936 + 64 * kMiB;  // 0.60 GiB, and 2 cuBLAS handles
// At least what a first tensor takes; at most 300 MiB of late modules, and for each of the 132
// multiprocessors 2048 threads' KiB of local memory, a heap of 8 MiB and a FIFO of 1 MiB.
constexpr int64_t kLeastContextBytes = 287047680;
constexpr int64_t kMostContextBytes = kContextBytes + (300 + 264 + 8 + 1) * kMiB;

/// A cluster of equal ranks that reserve `bytes`.
ClusterEstimate estimate_reserving(int64_t bytes, const Json& changes = Json::object()) {
  const Plan plan = small_plan(changes);
  return estimate_cluster(plan, {profile_of(plan, 0, 1e-3, 2e-3, bytes)});
}

TEST(EstimateCluster, FitsWhenReservedAndTheMostOfTheContextAreWithinTheGpu) {
  const Verdict verdict = estimate_reserving(kH100Bytes - kMostContextBytes).verdict;
  EXPECT_EQ(verdict.outcome, Fit::kFits);
  EXPECT_TRUE(verdict.fits());
  EXPECT_EQ(verdict.peak_high_bytes, kH100Bytes);
  EXPECT_EQ(verdict.headroom_bytes, kMostContextBytes - kContextBytes);
  EXPECT_EQ(verdict.capacity_bytes, kH100Bytes);
}

TEST(EstimateCluster, IsTooCloseToCallWhileTheBandHoldsTheLimit) {
  for (const int64_t reserved : {kH100Bytes - kMostContextBytes + 1,
                                 kH100Bytes - kContextBytes,
                                 kH100Bytes - kContextBytes + 1,
                                 kH100Bytes - kLeastContextBytes}) {
    const Verdict verdict = estimate_reserving(reserved).verdict;
    EXPECT_EQ(verdict.outcome, Fit::kTooClose) << reserved;
    EXPECT_FALSE(verdict.fits());
  }
  EXPECT_EQ(estimate_reserving(79 * kGiB - 512 * kMiB).verdict.reason,
            "rank 0 (stage 0) needs 79.17 GiB of 79.19 GiB; what is not known exactly makes it "
            "78.77 GiB at least and 79.73 GiB at most");
}

TEST(EstimateCluster, DoesNotFitWhenTheLeastIsOneByteTooMuch) {
  const Verdict verdict = estimate_reserving(kH100Bytes - kLeastContextBytes + 1).verdict;
  EXPECT_EQ(verdict.outcome, Fit::kDoesNotFit);
  EXPECT_EQ(verdict.peak_low_bytes, kH100Bytes + 1);
  EXPECT_EQ(to_json(verdict)["outcome"], "does_not_fit");
  EXPECT_EQ(to_json(verdict)["fits"], false);
}

TEST(EstimateCluster, IsTooCloseToCallWhenTheBandHoldsTheHeadroom) {
  const Verdict verdict =
      estimate_reserving(78 * kGiB, {{"memory", {{"headroom_bytes", kGiB / 2}}}}).verdict;
  EXPECT_EQ(verdict.outcome, Fit::kTooClose);
  EXPECT_TRUE(contains(verdict.reason, "of 79.19 GiB less the headroom of 0.50 GiB"))
      << verdict.reason;
}

TEST(EstimateCluster, AnUncertainRankIsWorseThanOneThatSurelyFits) {
  const Plan plan = pipeline_plan();
  std::vector<RankProfile> profiles = profiles_of(plan);
  profiles[0].peak.reserved_bytes = kH100Bytes - kMostContextBytes - kGiB;
  profiles[2].peak.reserved_bytes = kH100Bytes - kContextBytes;
  const Verdict verdict = estimate_cluster(plan, profiles).verdict;
  EXPECT_EQ(verdict.worst_rank, 2);
  EXPECT_EQ(verdict.outcome, Fit::kTooClose);
}

TEST(EstimateCluster, SaysHowMuchIsLeft) {
  EXPECT_EQ(
      estimate_reserving(75 * kGiB).verdict.reason,
      "rank 0 (stage 0) needs 75.67 GiB of 79.19 GiB, the most of all ranks, and leaves 3.52 GiB");
}

TEST(EstimateCluster, SaysHowMuchIsMissingAndWhere) {
  EXPECT_EQ(estimate_reserving(90 * kGiB).verdict.reason,
            "rank 0 (stage 0) needs 90.67 GiB of 79.19 GiB: 11.48 GiB too much, in "
            "iteration_1.forward_backward");
}

TEST(EstimateCluster, SaysWhatFillsThePeakOfEachClass) {
  const Plan plan = small_plan();
  RankProfile profile = profile_of(plan, 0);
  EXPECT_FALSE(estimate_cluster(plan, {profile}).rank_classes[0].peak_categories);
  profile.peak.categories.emplace()[MemoryCategory::kActivation] = 5 * kGiB;
  const ClusterEstimate estimate = estimate_cluster(plan, {profile});
  EXPECT_EQ(estimate.rank_classes[0].peak_categories, profile.peak.categories);
}

TEST(EstimateCluster, KeepsTheHeadroomThatThePlanAsksFor) {
  const ClusterEstimate estimate =
      estimate_reserving(75 * kGiB, {{"memory", {{"headroom_bytes", 4 * kGiB}}}});
  EXPECT_EQ(estimate.verdict.outcome, Fit::kDoesNotFit);
  EXPECT_TRUE(contains(estimate.verdict.reason, "less than the headroom of 4.00 GiB"))
      << estimate.verdict.reason;
}

TEST(EstimateCluster, ARankThatRanOutDoesNotFitThoughItsTotalWould) {
  const Plan plan = small_plan();
  RankProfile profile = profile_of(plan, 0, 1e-3, 2e-3, 70 * kGiB);
  profile.limit_lifted = true;
  profile.out_of_memory =
      OutOfMemoryRecord{.phase = "iteration_0.optimizer_step", .message = "CUDA out of memory"};
  const Verdict verdict = estimate_cluster(plan, {profile}).verdict;
  EXPECT_EQ(verdict.outcome, Fit::kDoesNotFit);
  EXPECT_TRUE(contains(verdict.reason, "ran out of memory in iteration_0.optimizer_step"))
      << verdict.reason;
  EXPECT_TRUE(contains(verdict.reason, "fragmentation")) << verdict.reason;
}

TEST(EstimateCluster, NamesTheRankThatNeedsMost) {
  const Plan plan = pipeline_plan();
  std::vector<RankProfile> profiles = profiles_of(plan);
  profiles[2].peak.reserved_bytes += kGiB;
  EXPECT_EQ(estimate_cluster(plan, profiles).verdict.worst_rank, 2);
}

TEST(EstimateCluster, ARankThatRanOutIsWorseThanOneThatNeedsMore) {
  const Plan plan = pipeline_plan();
  std::vector<RankProfile> profiles = profiles_of(plan);
  profiles[1].peak.reserved_bytes += kGiB;
  profiles[3].limit_lifted = true;
  EXPECT_EQ(estimate_cluster(plan, profiles).verdict.worst_rank, 3);
}

TEST(EstimateCluster, TermsOfARowAddUpToItsTotal) {
  const Plan plan = small_plan({{"parallelism", {{"tensor", 8}}}});
  RankProfile profile = profile_of(plan, 0);
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.group = GroupKind::kTensor;
  call.group_size = 8;
  profile.collectives = {collectives(Direction::kForward, call, 8)};
  const RankClassEstimate row = estimate_cluster(plan, {profile}).rank_classes.at(0);
  int64_t sum = 0;
  for (const MemoryTerm& term : row.terms) sum += term.value_bytes;
  EXPECT_EQ(sum, row.total_bytes);
  EXPECT_EQ(row.reserved_peak_bytes + row.context_bytes + row.communicator_bytes, row.total_bytes);
  EXPECT_EQ(row.communicator_bytes, (288 + 256) * kMiB);
  EXPECT_EQ(row.terms[0].source, Source::kSimulated);
}

TEST(EstimateCluster, RowsCoverTheWorld) {
  const Plan plan = meta_plan();
  const ClusterEstimate estimate = estimate_cluster(plan, profiles_of(plan));
  int64_t ranks = 0;
  for (const RankClassEstimate& row : estimate.rank_classes) ranks += row.count;
  EXPECT_EQ(ranks, 16384);
  EXPECT_EQ(estimate.rank_classes[15].stages, "15");
}

TEST(EstimateCluster, ReplaysTheScheduleOverAllStages) {
  const Plan plan = pipeline_plan();  // 4 stages, 8 micro-batches, 1 and 2 ms
  const ClusterEstimate estimate = estimate_cluster(plan, profiles_of(plan));
  EXPECT_NEAR(estimate.time.iteration_seconds, 33e-3, 1e-9);
  EXPECT_NEAR(estimate.time.bubble_seconds, 9e-3, 1e-9);
  EXPECT_NEAR(estimate.rank_classes[0].forward_seconds, 1e-3, 1e-9);
}

TEST(EstimateCluster, OneProfileOfAClassTimesAllItsStages) {
  const Plan plan = pipeline_plan({{"parallelism", {{"pipeline_schedule", "gpipe"}}}});
  EXPECT_EQ(profiles_of(plan).size(), 3u);
  EXPECT_NEAR(estimate_cluster(plan, profiles_of(plan)).time.iteration_seconds, 33e-3, 1e-9);
}

TEST(EstimateCluster, ThroughputFollowsFromTheIteration) {
  const Plan plan = small_plan();
  const ClusterEstimate estimate = estimate_cluster(plan, {profile_of(plan, 0)});
  const double seconds = estimate.time.iteration_seconds;  // one micro-batch: 3 ms
  EXPECT_NEAR(seconds, 3e-3, 1e-9);
  EXPECT_NEAR(estimate.throughput.tokens_per_second, 8 * 128 / 3e-3, 1e-3);
  EXPECT_NEAR(estimate.throughput.tokens_per_second_per_gpu, 128 / 3e-3, 1e-3);
  EXPECT_NEAR(estimate.throughput.mfu, step_flops(plan).model / 3e-3 / (8 * 989.4e12), 1e-12);
  EXPECT_DOUBLE_EQ(estimate.throughput.mfu, estimate.throughput.hfu);
}

TEST(EstimateCluster, FullRecomputeRaisesHfuAlone) {
  const Plan plan = small_plan({{"training", {{"recompute", "full"}}}});
  const Throughput throughput = estimate_cluster(plan, {profile_of(plan, 0)}).throughput;
  EXPECT_GT(throughput.hfu, throughput.mfu);
  EXPECT_LT(throughput.hfu, throughput.mfu * 4 / 3);
}

TEST(EstimateCluster, TrainingIsEmptyWhenThePlanDoesNotSayHowMuch) {
  EXPECT_FALSE(estimate_reserving(kGiB).training.has_value());
}

// 3,000,000 tokens in steps of 1,024 are 2,930 steps of 3 ms on 8 GPUs; one checkpoint of a minute.
TEST(EstimateCluster, TrainingFollowsFromTokensAndPrice) {
  const ClusterEstimate estimate = estimate_reserving(
      kGiB, {{"training", {{"tokens", 3000000}}}, {"cluster", {{"usd_per_gpu_hour", 2.0}}}});
  ASSERT_TRUE(estimate.training.has_value());
  EXPECT_EQ(estimate.training->steps, 2930);
  EXPECT_NEAR(estimate.training->seconds_without_failures, 8.79, 1e-6);
  EXPECT_NEAR(estimate.training->seconds, 68.79, 0.01);
  EXPECT_NEAR(estimate.training->gpu_hours, 8 * 68.79 / 3600, 1e-4);
  EXPECT_NEAR(estimate.training->cost_usd.value(), 2 * 8 * 68.79 / 3600, 1e-4);
}

TEST(EstimateCluster, TrainingByStepsHasNoCostWithoutAPrice) {
  const ClusterEstimate estimate = estimate_reserving(kGiB, {{"training", {{"steps", 100}}}});
  EXPECT_EQ(estimate.training.value().steps, 100);
  EXPECT_FALSE(estimate.training->cost_usd.has_value());
}

TEST(EstimateCluster, NamesWhatItAssumesAndLeavesOut) {
  const ClusterEstimate estimate = estimate_reserving(kGiB);
  EXPECT_TRUE(contains(estimate.assumptions.at(0), "CUDA context of h100-sxm: 0.60 GiB"));
  EXPECT_FALSE(estimate.not_modelled.empty());
}

TEST(EstimateCluster, SaysThatGroupsSharePortsWhereCallsOfDataRanksAreHidden) {
  const auto notes = [](bool overlap) {
    return fmt::format(
        "{}",
        fmt::join(estimate_reserving(kGiB, {{"parallelism", {{"overlap_grad_reduce", overlap}}}})
                      .assumptions,
                  "\n"));
  };
  EXPECT_TRUE(
      contains(notes(true), "groups share a port (a GPU's NVLink, its share of the NICs) fairly"));
  EXPECT_FALSE(
      contains(notes(false), "groups share a port (a GPU's NVLink, its share of the NICs) fairly"));
}

TEST(EstimateCluster, SaysWhenAProfileIsOfAnotherGpu) {
  const Plan plan = small_plan();
  RankProfile profile = profile_of(plan, 0);
  const auto notes = [&] {
    return fmt::format("{}", fmt::join(estimate_cluster(plan, {profile}).assumptions, "\n"));
  };
  EXPECT_FALSE(contains(notes(), "stands for"));
  profile.device.name = "NVIDIA A10G";
  EXPECT_TRUE(contains(notes(), "rank 0 ran on NVIDIA A10G and stands for h100-sxm"));
}

TEST(EstimateCluster, ShowsTheRatesThatThePlanRunsAt) {
  const auto names = [](const char* dtype, const char* attention) {
    std::string text;
    for (const RateTerm& rate :
         estimate_reserving(kGiB, {{"training", {{"dtype", dtype}, {"attention", attention}}}})
             .rates) {
      text += rate.name + "\n";
    }
    return text;
  };
  EXPECT_TRUE(contains(names("bf16", "flash"), "matrix products, bf16"));
  EXPECT_TRUE(contains(names("bf16", "flash"), "flash attention backward"));
  EXPECT_TRUE(contains(names("fp32", "unfused"), "matrix products, fp32"));
  EXPECT_FALSE(contains(names("fp32", "unfused"), "bf16"));
  EXPECT_FALSE(contains(names("fp32", "unfused"), "flash"));
}

TEST(EstimateCluster, RefusesToEstimateWithoutProfiles) {
  EXPECT_THROW(estimate_cluster(small_plan(), {}), UserError);
}

}  // namespace
}  // namespace estimator
