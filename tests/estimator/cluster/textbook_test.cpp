#include "estimator/cluster/textbook.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

Plan textbook_plan(const char* model, int64_t nodes, Json parallelism, Json training) {
  training["micro_batch_size"] = 1;
  return resolve_plan({.tree = Json{{"model", model},
                                    {"cluster", {{"gpu", "a100"}, {"nodes", nodes}}},
                                    {"parallelism", std::move(parallelism)},
                                    {"training", std::move(training)}},
                       .context = {}});
}

/// GPT-3 175B, whose layers are those of the papers: a = 96, h = 12,288, 96 layers, s = 2,048; on
/// 16 machines with tensor 8 x pipeline 8 x data 2.
Plan gpt3_on_128(Json more = Json::object(), const char* attention = "flash") {
  Json parallelism = {{"tensor", 8}, {"pipeline", 8}};
  parallelism.update(more);
  return textbook_plan(
      "gpt3-175b",
      16,
      parallelism,
      {{"sequence_length", 2048}, {"global_batch_size", 128}, {"attention", attention}});
}

struct ExecutedRank {
  RankClassEstimate rank;
  RankProfile profile;
};

TextbookTerm term_of(const Plan& plan,
                     const std::string& name,
                     const ExecutedRank& executed = {},
                     std::optional<int64_t> decode_tokens = std::nullopt) {
  const std::vector<TextbookTerm> terms =
      textbook_terms(plan, executed.rank, executed.profile, decode_tokens);
  const auto found =
      std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return t.name == name; });
  if (found == terms.end()) return {.name = "missing", .bytes = -1};
  return *found;
}

// 96 (12 h^2 + 13 h) + 2 h + 2,048 h + 51,200 h = 174,615,846,912 parameters.
constexpr int64_t kGpt3Parameters = 174'615'846'912;
constexpr int64_t kSbh = 2048 * 12'288;

TEST(Textbook, StateIs16BytesForEachParameterOfTheRanksShare) {
  EXPECT_EQ(term_of(gpt3_on_128(), "weights").bytes, 2 * kGpt3Parameters / 64);
  EXPECT_EQ(term_of(gpt3_on_128(), "gradients").bytes, 2 * kGpt3Parameters / 64);
  EXPECT_EQ(term_of(gpt3_on_128(), "master weights").bytes, 4 * kGpt3Parameters / 64);
  EXPECT_EQ(term_of(gpt3_on_128(), "moments of AdamW").bytes, 8 * kGpt3Parameters / 64);
  EXPECT_EQ(term_of(gpt3_on_128(), "moments of SGD with momentum").bytes, 4 * kGpt3Parameters / 64);
  EXPECT_EQ(term_of(gpt3_on_128(), "moments of 8-bit AdamW").bytes, 2 * kGpt3Parameters / 64);
}

TEST(Textbook, DataRanksShareTheOptimizerOfZeroStage1) {
  const Plan plan = gpt3_on_128({{"zero_stage", 1}});
  EXPECT_EQ(term_of(plan, "weights").bytes, 2 * kGpt3Parameters / 64);
  EXPECT_EQ(term_of(plan, "master weights").bytes, 4 * kGpt3Parameters / 128);
  const TextbookTerm moments = term_of(plan, "moments of AdamW");
  EXPECT_EQ(moments.bytes, 8 * kGpt3Parameters / 128);
  EXPECT_EQ(moments.formula, "8 x P / (t p d)");
}

// 12 x 96 x 12,288^2 + 51,200 x 12,288 = 174,575,321,088.
TEST(Textbook, WeightsFollowFromTheShapeAlone) {
  EXPECT_EQ(term_of(gpt3_on_128(), "weights, from the shape alone").bytes,
            2 * 174'575'321'088 / 64);
}

// Mixtral: 32 layers, h = 4,096, 32,000 rows; 8 experts of 3 x 4,096 x 14,336, of which a rank has
// one. DeepSeek-V2-Lite: 27 layers, the first dense.
TEST(Textbook, WeightsFromTheShapeHaveExpertsInPlaceOfMlps) {
  const Plan mixtral = textbook_plan("mixtral-8x7b", 1, {{"expert", 8}}, Json::object());
  const TextbookTerm term = term_of(mixtral, "weights, from the shape alone");
  constexpr int64_t h = 4096;
  EXPECT_EQ(term.bytes, 2 * (4 * 32 * h * h + 32'000 * h + int64_t{32} * 3 * h * 14'336));
  EXPECT_EQ(term.formula, "2 x P, experts by theirs, P = 4 l h^2 + v h + experts");
  const Plan deepseek = textbook_plan("deepseek-v2-lite", 1, {{"expert", 8}}, Json::object());
  EXPECT_TRUE(term_of(deepseek, "weights, from the shape alone")
                  .formula.ends_with("P = (12 l - 8 x 26) h^2 + v h + experts"));
}

// Mixtral's experts are 8 of which a rank has 1: with the dense part that is Mistral 7B
// (7,241,732,096 parameters) and the routers (32 x 8 x 4,096).
TEST(Textbook, ExpertsAreDividedByTheirOwnDegree) {
  const Plan plan = textbook_plan("mixtral-8x7b", 1, {{"expert", 8}}, Json::object());
  EXPECT_EQ(term_of(plan, "weights").bytes, 2 * (7'241'732'096 + 1'048'576));
}

// s b h (34 + 5 x 96 x 2,048 / 12,288) = s b h x 114; a stage has 12 layers, and the first of eight
// holds eight micro-batches.
TEST(Textbook, ActivationsAreThoseOfKorthikantiEtAl) {
  const Plan plan = gpt3_on_128({{"sequence_parallel", true}}, "unfused");
  EXPECT_EQ(term_of(plan, "activations of one forward").bytes, kSbh * 114 / 8 * 12);
  EXPECT_EQ(term_of(plan, "activations held at once").bytes, kSbh * 114 / 8 * 12 * 8);
  EXPECT_EQ(term_of(plan, "attention scores of a layer").bytes, int64_t{5} * 96 * 2048 * 2048 / 8);
  ExecutedRank of_stage_5;
  of_stage_5.rank.coordinate.pipeline = 5;
  EXPECT_EQ(term_of(plan, "activations held at once", of_stage_5).bytes, kSbh * 114 / 8 * 12 * 3);
}

// Of the 12 layers of a stage: 12 x 2, 3 x 2 and 9 x 34 (114 with scores), and an input for five,
// five and two layers.
TEST(Textbook, RecomputedLayersKeepTheirInputAlone) {
  const auto forward = [](const char* attention, const Json& method) {
    Json training = {{"sequence_length", 2048},
                     {"global_batch_size", 128},
                     {"attention", attention},
                     {"recompute", "full"}};
    training.update(method);
    const Json parallelism = {{"tensor", 8}, {"pipeline", 8}, {"sequence_parallel", true}};
    return term_of(textbook_plan("gpt3-175b", 16, parallelism, training),
                   "activations of one forward");
  };
  const Json block = {{"recompute_method", "block"}, {"recompute_num_layers", 3}};
  EXPECT_EQ(forward("flash", Json::object()).bytes, kSbh * 2 / 8 * 12);
  EXPECT_EQ(forward("flash", block).bytes, kSbh / 8 * (3 * 2 + 9 * 34));
  EXPECT_EQ(forward("unfused", block).bytes, kSbh / 8 * (3 * 2 + 9 * 114));
  EXPECT_EQ(forward("flash", {{"recompute_num_layers", 5}}).bytes, kSbh / 8 * 3 * 2);
}

TEST(Textbook, TensorRanksShareOnlyAPartWithoutSequenceParallelism) {
  EXPECT_EQ(term_of(gpt3_on_128(), "activations of one forward").bytes, kSbh * (10 + 24 / 8) * 12);
}

// 2 x 7 + 8 + 1 = 23 forwards of 6 layers, which is 96 x (1 + 7 / (8 x 2)) = 138 layers.
TEST(Textbook, InterleavedStagesHoldMore) {
  const Plan plan = gpt3_on_128({{"virtual_stages", 2}, {"sequence_parallel", true}});
  EXPECT_EQ(term_of(plan, "activations of one forward").bytes, kSbh * 34 / 8 * 6);
  EXPECT_EQ(term_of(plan, "activations held at once").bytes, kSbh * 34 / 8 * 138);
}

TEST(Textbook, LogitsAreOfTheLastStage) {
  EXPECT_EQ(term_of(gpt3_on_128(), "logits in fp32").name, "missing");
  ExecutedRank last;
  last.rank.coordinate.pipeline = 7;
  constexpr int64_t kLogits = int64_t{4} * 2048 * 51'200 / 8;
  EXPECT_EQ(term_of(gpt3_on_128(), "logits in fp32", last).bytes, kLogits);
  EXPECT_EQ(term_of(gpt3_on_128(), "activations of one forward", last).bytes,
            kSbh * 13 * 12 + kLogits);
}

TEST(Textbook, WhatWasExecutedStandsBeside) {
  ExecutedRank executed;
  executed.rank.total_bytes = 700;
  executed.rank.allocated_peak_bytes = 600;
  executed.rank.peak_categories.emplace()[MemoryCategory::kActivation] = 500;
  executed.profile.model_state = {.parameter_bytes = 100, .optimizer_state_bytes = 300};
  executed.profile.micro_batches.activation_bytes = 50;
  const auto of = [&](const char* name) {
    return term_of(gpt3_on_128(), name, executed).executed_bytes;
  };
  EXPECT_EQ(of("weights"), 100);
  EXPECT_EQ(of("moments of AdamW"), 300);
  EXPECT_EQ(of("moments of Muon"), std::nullopt);
  EXPECT_EQ(of("activations of one forward"), 50);
  EXPECT_EQ(of("activations held at once"), 500);
  EXPECT_EQ(of("all of it"), 600);
  EXPECT_EQ(of("with overhead"), 700);
}

TEST(Textbook, TheSumHasEachTermOnce) {
  const int64_t state = 16 * kGpt3Parameters / 64;
  const int64_t activations = kSbh * 13 * 12 * 8;
  EXPECT_EQ(term_of(gpt3_on_128(), "all of it").bytes, state + activations);
  EXPECT_EQ(term_of(gpt3_on_128(), "with overhead").bytes, (state + activations) * 12 / 10);
}

// 2 x 12 heads x 128 x 12 layers x 1,000 tokens x 2 bytes.
TEST(Textbook, KeysAndValuesAreThoseOfTheTokensThatAreDecoded) {
  EXPECT_EQ(term_of(gpt3_on_128(), "keys and values of 1000 tokens", {}, 1000).bytes, 73'728'000);
}

// (512 + 64) x 61 layers x 1,000 tokens x 2 bytes.
TEST(Textbook, LatentAttentionKeepsItsLatentAlone) {
  const Plan plan = textbook_plan("deepseek-v3", 1, {{"expert", 8}}, Json::object());
  EXPECT_EQ(term_of(plan, "keys and values of 1000 tokens", {}, 1000).bytes, 70'272'000);
}

TEST(Textbook, ContextRanksStandInTheFormulasThatTheyDivide) {
  const auto formula = [](Json parallelism, const char* name) {
    parallelism["context"] = 2;
    const Plan plan = textbook_plan("llama3-8b",
                                    1,
                                    std::move(parallelism),
                                    {{"sequence_length", 4096}, {"attention", "flash"}});
    return term_of(plan, name).formula;
  };
  const Json tensor = {{"tensor", 2}}, sequence = {{"tensor", 2}, {"sequence_parallel", true}};
  EXPECT_EQ(formula(tensor, "logits in fp32"), "4 s b v / (t c)");
  EXPECT_EQ(formula(tensor, "attention scores of a layer").find("5 a b s^2 / (t c), of"), 0U);
  const char* const forward = "activations of one forward";
  EXPECT_EQ(formula(Json::object(), forward).find("34 s b h / c x "), 0U);
  EXPECT_EQ(formula(tensor, forward).find("s b h (10 + 24 / t) / c x "), 0U);
  EXPECT_EQ(formula(sequence, forward).find("34 s b h / (t c) x "), 0U);
}

// 2 (4 - 1) + (2 - 1) g + 1 forwards on the first of four stages with two chunks.
TEST(Textbook, HoldsAsManyForwardsAsGroupsOfVirtualStagesMake) {
  const auto held = [](int64_t group) {
    return term_of(textbook_plan("llama3-8b",
                                 4,
                                 {{"tensor", 8},
                                  {"pipeline", 4},
                                  {"virtual_stages", 2},
                                  {"microbatch_group_size_per_virtual_stage", group}},
                                 {{"sequence_length", 4096}, {"global_batch_size", 32}}),
                   "activations held at once")
        .formula;
  };
  EXPECT_NE(held(4).find("in flight: 11"), std::string::npos) << held(4);
  EXPECT_NE(held(8).find("in flight: 15"), std::string::npos) << held(8);
  EXPECT_NE(held(16).find("in flight: 23"), std::string::npos) << held(16);
}

}  // namespace
}  // namespace estimator
