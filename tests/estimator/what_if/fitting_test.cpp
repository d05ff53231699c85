// The largest micro-batch and the advice, over ranks whose memory is a formula.
#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/advice.h"
#include "estimator/what_if/least_bytes.h"
#include "estimator/what_if/max_micro_batch.h"
#include "estimator/what_if/max_sequence.h"
#include "estimator/what_if/typed_flags.h"
#include "tests/estimator/what_if/fake_ranks.h"

namespace estimator {
namespace {

PlanSpec spec_with(const Json& changes = Json::object()) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "training": {"micro_batch_size": 1, "global_batch_size": 8, "sequence_length": 128}})");
  tree.merge_patch(changes);
  return {.tree = tree, .context = {}};
}

TEST(MaxMicroBatch, IsTheLargestThatFits) {
  // An H100 has 79.19 GiB; with 0.55 GiB of context, 7 x 11 GiB fit and 8 x 11 GiB do not.
  FakeRanks ranks(
      [](const Plan& plan, int64_t) { return plan.training.micro_batch_size * 11 * kGiB; });
  const MaxMicroBatch answer = find_max_micro_batch(
      spec_with({{"training", {{"global_batch_size", nullptr}}}}), ranks.runner());
  EXPECT_EQ(answer.micro_batch_size, 7);
  EXPECT_LE(answer.trials.size(), 6u);  // 1, 2, 4, 8, then 6 and 7
}

// 3 x 26.2 GiB and a context of 0.61 need 79.21 GiB, at least 78.87: an H100 of 79.19 may hold it.
TEST(MaxMicroBatch, TakesTheOneThatSurelyFits) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return plan.training.micro_batch_size * (26 * kGiB + kGiB / 5);
  });
  const Json free = {{"training", {{"global_batch_size", nullptr}}}};
  const MaxMicroBatch answer = find_max_micro_batch(spec_with(free), ranks.runner());
  EXPECT_EQ(answer.micro_batch_size, 2);
  EXPECT_EQ(answer.trials.back().micro_batch_size, 3);
  EXPECT_EQ(answer.trials.back().outcome, Fit::kTooClose);
  EXPECT_NE(max_micro_batch_text(answer).find("too close to call"), std::string::npos);
}

// 10 samples would fit, but 64 samples on 4 data ranks are 16 for each: 8 divides them, 10 does
// not.
TEST(MaxMicroBatch, DividesTheGlobalBatchThatIsGiven) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    EXPECT_EQ(plan.global_batch_size(), 64);
    return plan.training.micro_batch_size * 7 * kGiB;
  });
  const Json changes = {{"training", {{"global_batch_size", 64}}},
                        {"parallelism", {{"tensor", 2}}}};
  const MaxMicroBatch answer = find_max_micro_batch(spec_with(changes), ranks.runner());
  EXPECT_EQ(answer.micro_batch_size, 8);
  EXPECT_EQ(answer.held_fixed, HeldFixed::kGlobalBatch);
  EXPECT_EQ(answer.micro_batches, 2);
  EXPECT_EQ(answer.global_batch_size, 64);
  EXPECT_NE(max_micro_batch_text(answer).find("divide the given global batch"), std::string::npos);
}

TEST(MaxMicroBatch, LetsAGlobalBatchGrowThatIsNotGiven) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    EXPECT_EQ(plan.micro_batches(), 1);
    return plan.training.micro_batch_size * 11 * kGiB;
  });
  const Json free = {{"training", {{"global_batch_size", nullptr}}}};
  const MaxMicroBatch answer = find_max_micro_batch(spec_with(free), ranks.runner());
  EXPECT_EQ(answer.micro_batch_size, 7);
  EXPECT_EQ(answer.held_fixed, HeldFixed::kMicroBatches);
  EXPECT_EQ(answer.global_batch_size, 56);
  EXPECT_NE(max_micro_batch_text(answer).find("--mbs 7"), std::string::npos);
}

const Json kRotary = {{"model", {{"position_embedding", "rope"}}}};

// 2 GiB for each 1,024 tokens: 39 of them fit into 79.19 GiB with a context of 0.55, 40 do not.
TEST(MaxSequence, IsTheLongestThatFits) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) { return plan.sequence_length() / 1024 * 2 * kGiB; });
  const MaxSequence answer = find_max_sequence(spec_with(kRotary), ranks.runner());
  EXPECT_EQ(answer.sequence_length, 38 * 1024);
  EXPECT_LE(answer.trials.size(), 12u);  // 1, 2, 4 ... 64, then 48, 40, 36, 38 and 39
  EXPECT_NE(max_sequence_text(answer).find("--seq 38912"), std::string::npos);
}

TEST(MaxSequence, EndsWithLearnedPositions) {
  FakeRanks ranks([](const Plan&, int64_t) { return kGiB; });
  const Json learned = {{"model", {{"max_position_embeddings", 3000}}}};
  const MaxSequence answer = find_max_sequence(spec_with(learned), ranks.runner());
  EXPECT_EQ(answer.sequence_length, 3000);
  EXPECT_NE(max_sequence_text(answer).find("longer ones are not allowed: "), std::string::npos);
  EXPECT_NE(max_sequence_text(answer).find("3000"), std::string::npos);
}

TEST(MaxSequence, TriesAModelOfFewPositionsWhole) {
  FakeRanks ranks([](const Plan&, int64_t) { return kGiB; });
  const Json few = {{"model", {{"max_position_embeddings", 512}}}};
  EXPECT_EQ(find_max_sequence(spec_with(few), ranks.runner()).sequence_length, 512);
}

TEST(MaxSequence, BlamesMemoryWhereMemoryEndsIt) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) { return plan.sequence_length() / 1024 * 50 * kGiB; });
  const Json learned = {{"model", {{"max_position_embeddings", 4096}}}};
  const MaxSequence answer = find_max_sequence(spec_with(learned), ranks.runner());
  EXPECT_EQ(answer.sequence_length, 1024);
  EXPECT_FALSE(answer.not_allowed);
}

TEST(MaxSequence, SaysWhenNoneFits) {
  FakeRanks ranks([](const Plan&, int64_t) { return 90 * kGiB; });
  const MaxSequence answer = find_max_sequence(spec_with(kRotary), ranks.runner());
  EXPECT_FALSE(answer.sequence_length.has_value());
  EXPECT_NE(max_sequence_text(answer).find("not even a sequence of 1,024"), std::string::npos);
}

TEST(MaxMicroBatch, SaysWhenNotEvenOneFits) {
  FakeRanks ranks([](const Plan&, int64_t) { return 90 * kGiB; });
  const MaxMicroBatch answer = find_max_micro_batch(spec_with(), ranks.runner());
  EXPECT_FALSE(answer.micro_batch_size.has_value());
  EXPECT_NE(max_micro_batch_text(answer).find("not even"), std::string::npos);
}

TEST(FitProbe, RunsTheOtherStagesOnlyWhenTheLikelyWorstOneFits) {
  const Plan plan = resolve_plan(spec_with({{"parallelism", {{"pipeline", 8}}}}));
  FakeRanks too_much([](const Plan&, int64_t stage) { return (stage == 5 ? 90 : 1) * kGiB; });
  EXPECT_EQ(probe_fit(plan, 5, too_much.runner()).fit, Fit::kDoesNotFit);
  EXPECT_EQ(too_much.ranks_run(), 1);

  FakeRanks elsewhere([](const Plan&, int64_t stage) { return (stage == 2 ? 90 : 1) * kGiB; });
  EXPECT_EQ(probe_fit(plan, 5, elsewhere.runner()).fit, Fit::kDoesNotFit);
  EXPECT_GT(elsewhere.ranks_run(), 1);
}

TEST(FitProbe, CompletedHasTheWorstOfAllStages) {
  const Plan plan = resolve_plan(spec_with({{"parallelism", {{"pipeline", 8}}}}));
  FakeRanks ranks([](const Plan&, int64_t stage) { return (stage == 2 ? 120 : 90) * kGiB; });
  const PlanRunner runner = ranks.runner();
  FitAnswer answer = probe_fit(plan, 5, runner);
  complete_fit(plan, runner, answer);
  FitAnswer whole;
  complete_fit(plan, runner, whole);
  EXPECT_GT(answer.peak_bytes, 120 * kGiB);
  EXPECT_EQ(answer.peak_bytes, whole.peak_bytes);
  ASSERT_TRUE(answer.estimate);
  EXPECT_EQ(worst_stage(*answer.estimate), 2);
}

std::vector<Advice> advice_for(const PlanSpec& spec, FakeRanks& ranks) {
  return advise(spec, ranks.estimate(resolve_plan(spec)), ranks.runner());
}

TEST(Advice, ToAPlanThatFitsIsWhatSavesMemoryOrTimeFastestFirst) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) {
        return plan.training.micro_batch_size * 10 * kGiB - plan.parallelism.zero_stage * kGiB;
      },
      [](const Plan& plan) { return 0.1 / static_cast<double>(plan.training.micro_batch_size); });
  const Json changes = {{"training", {{"global_batch_size", 128}}}};
  const auto advice = advice_for(spec_with(changes), ranks);
  ASSERT_EQ(advice.size(), 3u);
  EXPECT_EQ(advice[0].flags, "--mbs 4");  // 40 GiB of 79.19; 8 of the 16 samples need 80
  EXPECT_LT(advice[0].gain_bytes, 0);
  EXPECT_GT(advice[0].gain_seconds, 0);
  const std::string zero = "--use-distributed-optimizer";
  EXPECT_EQ(advice[1].flags, zero);
  EXPECT_EQ(advice[1].gain_bytes, kGiB);
  EXPECT_EQ(advice[2].flags, zero + " --optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d");
}

TEST(Advice, TakesTheLargestMicroBatchThatFits) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) { return plan.training.micro_batch_size * 15 * kGiB; });
  const Json changes = {{"training", {{"micro_batch_size", 32}, {"global_batch_size", 256}}}};
  const auto advice = advice_for(spec_with(changes), ranks);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text.find("micro-batch 4: fits"), 0u) << advice[0].text;
  EXPECT_EQ(advice[0].flags, "--mbs 4");
}

// Full recompute fits, but makes each micro-batch slower; half the micro-batch with flash attention
// costs nothing here, and flash attention alone is not enough.
TEST(Advice, AddsWhatCostsNothingToASmallerMicroBatch) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) {
        const bool full = plan.training.recompute == Recompute::kFull;
        const bool flash = plan.training.attention == Attention::kFlash;
        return (full ? 1 : plan.training.micro_batch_size) * (flash ? 30 : 50) * kGiB;
      },
      [](const Plan& plan) {
        const bool full = plan.training.recompute == Recompute::kFull;
        return 0.05 + (full ? 0.14 : 0.1) * static_cast<double>(plan.training.micro_batch_size);
      });
  const Json changes = {
      {"training", {{"micro_batch_size", 4}, {"global_batch_size", 32}, {"attention", "unfused"}}}};
  const auto advice = advice_for(spec_with(changes), ranks);
  ASSERT_GE(advice.size(), 2u);
  EXPECT_EQ(advice[0].flags, "--attention-backend flash --mbs 2") << advice[0].text;
}

TEST(FirstThatFits, IsFoundByBisection) {
  for (std::size_t steps = 1; steps < 20; ++steps) {
    for (std::size_t first = 0; first <= steps; ++first) {
      int probes = 0;
      const FirstThatFits found = first_that_fits(steps, [&](std::size_t step) {
        ++probes;
        FitAnswer answer;
        if (step >= first) answer.fit = Fit::kFits;
        answer.peak_bytes = static_cast<int64_t>(step);
        return answer;
      });
      EXPECT_EQ(found.step, std::min(first, steps - 1));
      EXPECT_EQ(found.answer.fits(), first < steps);
      EXPECT_EQ(found.answer.peak_bytes, static_cast<int64_t>(found.step));
      EXPECT_LE(probes, 7);
    }
  }
}

TEST(Advice, IsGivenToAPlanThatIsTooCloseToCall) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    const bool full = plan.training.recompute == Recompute::kFull;
    return full ? 50 * kGiB : 78 * kGiB + kGiB / 2;
  });
  const auto advice = advice_for(spec_with(), ranks);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text.find("full recompute of 1 of the 8 layers of a chunk: fits"), 0u)
      << advice[0].text;
}

TEST(Advice, NamesTheChangesThatWereSeenToFitAndWhatTheySave) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return (plan.training.recompute == Recompute::kFull ? 50 : 90) * kGiB;
  });
  const auto advice = advice_for(spec_with(), ranks);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text.find("full recompute of 1 of the 8 layers of a chunk: fits"), 0u)
      << advice[0].text;
  EXPECT_EQ(advice[0].gain_bytes, 40 * kGiB);
  EXPECT_TRUE(advice[0].gain_seconds.has_value());
}

TEST(Advice, CombinesChangesWhereNoSingleOneIsEnough) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    int64_t need = 130;
    if (plan.training.recompute == Recompute::kFull) need -= 40;
    if (plan.parallelism.zero_stage >= 1) need -= 20;
    return need * kGiB;
  });
  const auto advice = advice_for(spec_with(), ranks);
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice[0].text.find("full recompute and ZeRO stage 1: fits"), 0u) << advice[0].text;
}

// 8 layers of 3.2 billion parameters need 464 GB, 116 GB on 4 tensor ranks and 58 GB on 8.
TEST(Advice, DividesAModelUntilItsStateFits) {
  FakeRanks ranks([](const Plan& plan, int64_t) { return least_bytes(plan) + kGiB; });
  const PlanSpec spec = spec_with(
      {{"model", {{"hidden_size", 16384}}}, {"parallelism", {{"overlap_grad_reduce", true}}}});
  const std::vector<Advice> advice = advice_for(spec, ranks);
  const auto tensor = std::find_if(advice.begin(), advice.end(), [](const Advice& one) {
    return one.text.find("tensor ") == 0;
  });
  ASSERT_NE(tensor, advice.end());
  EXPECT_EQ(tensor->text.find("tensor 8 (data 1): fits"), 0u) << tensor->text;
  for (const Advice& one : advice) {
    EXPECT_EQ(one.text.find("full recompute"), std::string::npos) << one.text;  // of no use alone
  }
}

/// The change that saves most is not among the fastest pair that fits.
TEST(Advice, TakesTheFastestPairsThatShouldFit) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) {
        int64_t need = 140;
        if (plan.training.recompute == Recompute::kFull) need -= 40;
        if (plan.parallelism.zero_stage >= 1) need -= 30;
        if (plan.training.optimizer_cpu_offload) need -= 25;
        return need * kGiB;
      },
      [](const Plan& plan) { return plan.training.optimizer_cpu_offload ? 4.0 : 1.0; });
  const auto advice = advice_for(spec_with(), ranks);
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice[0].text.find("full recompute and ZeRO stage 1: fits"), 0u) << advice[0].text;
}

/// Flash attention saves little, but what is off and costs nothing comes before what is dear.
TEST(Advice, BeginsWithFlashAttentionAndSaysHowMuchEachIsWorth) {
  FakeRanks ranks(
      [](const Plan& plan, int64_t) {
        const bool full = plan.training.recompute == Recompute::kFull;
        const bool flash = plan.training.attention == Attention::kFlash;
        return (full ? 30 : flash ? 70 : 90) * kGiB;
      },
      [](const Plan& plan) { return plan.training.recompute == Recompute::kFull ? 0.13 : 0.1; });
  const auto advice = advice_for(spec_with({{"training", {{"attention", "unfused"}}}}), ranks);
  ASSERT_GE(advice.size(), 2u);
  EXPECT_EQ(advice[0].flags, "--attention-backend flash");
  EXPECT_EQ(advice[0].priority, Priority::kCritical);
  EXPECT_EQ(advice.back().text.find("full recompute of 1 of the 8 layers of a chunk: fits"), 0u)
      << advice.back().text;
  EXPECT_EQ(advice.back().priority, Priority::kHigh);
}

TEST(Advice, IsNotLookedForWhereTheStateAloneIsTooMuch) {
  FakeRanks ranks([](const Plan&, int64_t) { return 100 * kGiB; });
  const PlanSpec spec = spec_with();
  ClusterEstimate estimate = ranks.estimate(resolve_plan(spec));
  estimate.whole_state = {.fewest_gpus = 24, .fewest_gpus_offloaded = 16};  // of 8
  const int run_before = ranks.ranks_run();
  EXPECT_TRUE(advise(spec, estimate, ranks.runner()).empty());
  EXPECT_EQ(ranks.ranks_run(), run_before);
}

TEST(Advice, IsLookedForWhereTheStateFitsWithoutItsOptimizer) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return (plan.training.optimizer_cpu_offload ? 40 : 100) * kGiB;
  });
  const PlanSpec spec = spec_with();
  ClusterEstimate estimate = ranks.estimate(resolve_plan(spec));
  estimate.whole_state = {.fewest_gpus = 16, .fewest_gpus_offloaded = 8};
  const std::vector<Advice> advice = advise(spec, estimate, ranks.runner());
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice[0].text.find("optimizer offload: fits"), 0u) << advice[0].text;
}

TEST(SearchToType, TakesOverWhatWasSaid) {
  const PlanSpec spec{
      .tree = Json::parse(R"({"model": "llama3-70b", "cluster": {"gpu": "h100", "nodes": 1},
                              "training": {"sequence_length": 4096}})"),
      .context = {}};
  EXPECT_EQ(search_to_type(spec, resolve_plan(spec), {"--max-gpus", 32}),
            "onerank search --model llama3-70b --gpu h100 --seq 4096 --gbs 32 --max-gpus 32");
  const PlanSpec experts = spec.with({{"model", "deepseek-v3"}});  // dense layers before the others
  EXPECT_EQ(search_to_type(experts, resolve_plan(experts), {"--max-gpus", 32}),
            "onerank search --model deepseek-v3 --gpu h100 --seq 4096 --gbs 32 --max-gpus 32");
}

TEST(SearchToType, SearchesTheSameModelOnTheSameMachines) {
  const PlanSpec spec{.tree = Json::parse(R"({"model": {"preset": "mistral-7b", "num_layers": 64},
                              "cluster": {"gpu": "a10", "nodes": 1, "gpus_per_node": 4,
                                          "inter_link": "tcp-100g"},
                              "parallelism": {"tensor": 4, "sequence_parallel": true},
                              "training": {"sequence_length": 2048, "micro_batch_size": 2,
                                           "recompute": "full"},
                              "memory": {"headroom_bytes": 2147483648}})"),
                      .context = {}};
  EXPECT_EQ(search_to_type(spec, resolve_plan(spec), {"--max-gpus", 32}),
            "onerank search --model mistral-7b --num-layers 64 --gpu a10 --gpus-per-node 4 "
            "--inter-link tcp-100g --seq 2048 --headroom 2147483648 --gbs 32 --max-gpus 32");
}

TEST(SearchToType, IsEmptyForAModelWithoutAName) {
  const PlanSpec spec = spec_with();
  EXPECT_EQ(search_to_type(spec, resolve_plan(spec), {"--max-gpus", 32}), "");
}

TEST(Advice, SaysHowMuchIsMissingWhereNothingFits) {
  FakeRanks ranks([](const Plan& plan, int64_t) {
    return (plan.training.recompute == Recompute::kFull ? 900 : 1000) * kGiB;
  });
  const auto advice = advice_for(spec_with(), ranks);
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice[0].text.find("full recompute: still "), 0u) << advice[0].text;
  EXPECT_EQ(advice[0].gain_bytes, 100 * kGiB);
}

// Full recompute saves 850 GiB of the first stage, which was the worst, and nothing of the last;
// ZeRO saves 150 GiB of each.
TEST(Advice, SavesOnlyWhatTheWorstStageOfTheChangedPlanSaves) {
  FakeRanks ranks([](const Plan& plan, int64_t stage) {
    const bool full = plan.training.recompute == Recompute::kFull;
    const int64_t need = stage > 0 ? 900 : full ? 150 : 1000;
    return (need - (plan.parallelism.zero_stage == 1 ? 150 : 0)) * kGiB;
  });
  const auto advice = advice_for(spec_with({{"parallelism", {{"pipeline", 2}}}}), ranks);
  ASSERT_GE(advice.size(), 2u);
  EXPECT_EQ(advice[0].text.find("ZeRO stage 1"), 0u) << advice[0].text;
  for (const Advice& one : advice) {
    const bool is_full = one.text.find("full recompute") == 0;
    if (is_full) {
      EXPECT_EQ(one.gain_bytes, 100 * kGiB);
    }
  }
}

TEST(MaxMicroBatch, ShowsTheWorstRankOfEachSize) {
  FakeRanks ranks([](const Plan& plan, int64_t stage) {
    return plan.training.micro_batch_size * (stage == 0 ? 90 : 100) * kGiB;
  });
  const MaxMicroBatch answer =
      find_max_micro_batch(spec_with({{"parallelism", {{"pipeline", 2}}}}), ranks.runner());
  ASSERT_FALSE(answer.trials.empty());
  EXPECT_GT(answer.trials.front().peak_bytes, 100 * kGiB);
}

}  // namespace
}  // namespace estimator
