// The largest micro-batch and the advice, over ranks whose memory is a formula.
#include <gtest/gtest.h>

#include <functional>

#include "estimator/base/units.h"
#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/parallel_layout.h"
#include "sim/cli/cluster/advice.h"
#include "sim/cli/cluster/max_micro_batch.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::kGiB;
using estimator::Plan;
using estimator::RankProfile;

Plan plan_with(const Json& changes = Json::object()) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "training": {"micro_batch_size": 1, "global_batch_size": 8, "sequence_length": 128}})");
  tree.merge_patch(changes);
  return estimator::resolve_plan(tree, {});
}

/// Answers with `peak_bytes(plan, stage)` and counts what was run.
class FakeRanks {
 public:
  using Peak = std::function<int64_t(const Plan&, int64_t stage)>;
  explicit FakeRanks(Peak peak) : peak_(std::move(peak)) {}

  PlanRunner runner() {
    return {.run = [this](const Plan& plan, const std::vector<int64_t>& ranks) {
      std::vector<RankProfile> profiles;
      for (const int64_t rank : ranks) profiles.push_back(profile(plan, rank));
      return profiles;
    }};
  }
  int ranks_run() const { return ranks_run_; }

 private:
  RankProfile profile(const Plan& plan, int64_t rank) {
    ++ranks_run_;
    RankProfile profile;
    profile.plan = estimator::to_json(plan);
    profile.rank = rank;
    profile.world_size = plan.world_size();
    profile.coordinate = estimator::ParallelLayout(plan).coordinate(rank);
    profile.device.gpu = plan.cluster.gpu;
    profile.device.name = estimator::find_gpu(plan.cluster.gpu)->cuda_name;
    profile.micro_batches = {plan.micro_batches(), plan.micro_batches(), 1, 0};
    profile.phases.push_back({"iteration_1.forward_backward", {}, {}, {}, 0});
    const int64_t bytes = peak_(plan, profile.coordinate.pipeline);
    profile.peak = {bytes, bytes, "iteration_1.forward_backward", "", ""};
    return profile;
  }

  Peak peak_;
  int ranks_run_ = 0;
};

TEST(MaxMicroBatch, IsTheLargestThatFits) {
  // An H100 has 79.19 GiB; with 0.55 GiB of context, 7 x 11 GiB fit and 8 x 11 GiB do not.
  FakeRanks ranks(
      [](const Plan& plan, int64_t) { return plan.training.micro_batch_size * 11 * kGiB; });
  const MaxMicroBatch answer = find_max_micro_batch(plan_with(), ranks.runner());
  EXPECT_EQ(answer.micro_batch_size, 7);
  EXPECT_LE(answer.trials.size(), 6u);  // 1, 2, 4, 8, then 6 and 7
}

// 3 x 26.2 GiB and a context of 0.61 need 79.21 GiB, at least 78.87: an H100 of 79.19 may hold it.
TEST(MaxMicroBatch, TakesTheOneThatSurelyFits) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return plan.training.micro_batch_size * (26 * kGiB + kGiB / 5);
  });
  const MaxMicroBatch answer = find_max_micro_batch(plan_with(), ranks.runner());
  EXPECT_EQ(answer.micro_batch_size, 2);
  EXPECT_EQ(answer.trials.back().micro_batch_size, 3);
  EXPECT_EQ(answer.trials.back().outcome, estimator::Fit::kTooClose);
  EXPECT_NE(max_micro_batch_text(answer).find("too close to call"), std::string::npos);
}

TEST(MaxMicroBatch, KeepsTheNumberOfMicroBatches) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    EXPECT_EQ(plan.micro_batches(), 3);
    return plan.training.micro_batch_size * 30 * kGiB;
  });
  const Plan plan = plan_with({{"training", {{"global_batch_size", 24}}}});
  EXPECT_EQ(find_max_micro_batch(plan, ranks.runner()).micro_batch_size, 2);
}

TEST(MaxMicroBatch, SaysWhenNotEvenOneFits) {
  FakeRanks ranks([](const Plan&, int64_t) { return 90 * kGiB; });
  const MaxMicroBatch answer = find_max_micro_batch(plan_with(), ranks.runner());
  EXPECT_FALSE(answer.micro_batch_size.has_value());
  EXPECT_NE(max_micro_batch_text(answer).find("not even"), std::string::npos);
}

TEST(FitProbe, RunsTheOtherStagesOnlyWhenTheLikelyWorstOneFits) {
  const Plan plan = plan_with({{"parallelism", {{"pipeline", 8}}}});
  FakeRanks too_much([](const Plan&, int64_t stage) { return (stage == 5 ? 90 : 1) * kGiB; });
  EXPECT_EQ(probe_fit(plan, 5, too_much.runner()).fit, estimator::Fit::kDoesNotFit);
  EXPECT_EQ(too_much.ranks_run(), 1);

  FakeRanks elsewhere([](const Plan&, int64_t stage) { return (stage == 2 ? 90 : 1) * kGiB; });
  EXPECT_EQ(probe_fit(plan, 5, elsewhere.runner()).fit, estimator::Fit::kDoesNotFit);
  EXPECT_GT(elsewhere.ranks_run(), 1);
}

std::vector<estimator::Advice> advice_for(const Plan& plan, FakeRanks& ranks) {
  std::vector<int64_t> representatives;
  for (const auto& c : estimator::rank_classes(plan))
    representatives.push_back(c.representative_rank);
  return advise(plan,
                estimator::estimate_cluster(plan, ranks.runner().run(plan, representatives)),
                ranks.runner());
}

TEST(Advice, IsNotGivenToAPlanThatFits) {
  FakeRanks ranks([](const Plan&, int64_t) { return 10 * kGiB; });
  EXPECT_TRUE(advice_for(plan_with(), ranks).empty());
}

TEST(Advice, IsGivenToAPlanThatIsTooCloseToCall) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    const bool full = plan.training.recompute == estimator::Recompute::kFull;
    return full ? 50 * kGiB : 78 * kGiB + kGiB / 2;
  });
  const auto advice = advice_for(plan_with(), ranks);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text.find("full recompute: fits"), 0u) << advice[0].text;
}

TEST(Advice, NamesTheChangesThatWereSeenToFitAndWhatTheySave) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return (plan.training.recompute == estimator::Recompute::kFull ? 50 : 90) * kGiB;
  });
  const auto advice = advice_for(plan_with(), ranks);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text.find("full recompute: fits"), 0u) << advice[0].text;
  EXPECT_EQ(advice[0].gain_bytes, 40 * kGiB);
  EXPECT_TRUE(advice[0].gain_seconds.has_value());
}

TEST(Advice, CombinesChangesWhereNoSingleOneIsEnough) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    int64_t need = 130;
    if (plan.training.recompute == estimator::Recompute::kFull) need -= 40;
    if (plan.parallelism.zero_stage == 1) need -= 20;
    return need * kGiB;
  });
  const auto advice = advice_for(plan_with(), ranks);
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice[0].text.find("full recompute and ZeRO stage 1: fits"), 0u) << advice[0].text;
}

TEST(Advice, SaysHowMuchIsMissingWhereNothingFits) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return (plan.training.recompute == estimator::Recompute::kFull ? 900 : 1000) * kGiB;
  });
  const auto advice = advice_for(plan_with(), ranks);
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice[0].text.find("full recompute: still "), 0u) << advice[0].text;
  EXPECT_EQ(advice[0].gain_bytes, 100 * kGiB);
}

}  // namespace
}  // namespace sim
