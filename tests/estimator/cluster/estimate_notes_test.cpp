#include "estimator/cluster/estimate_notes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/hardware/hardware.h"
#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

bool assumes(const Json& changes, const std::string& words) {
  const Plan plan = small_plan(changes);
  const std::vector<std::string> notes =
      assumptions_of(plan, *find_gpu(plan.cluster.gpu), fabric_of(plan), {});
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

TEST(Assumptions, SayThatRoutersAreTakenToBeEven) {
  EXPECT_TRUE(assumes({{"model", {{"num_experts", 4}, {"add_bias_linear", false}}}},
                      "routers load experts evenly"));
  EXPECT_FALSE(assumes(Json::object(), "experts"));
}

TEST(Assumptions, SayThatStagesGatherInTurn) {
  const auto in_turn = [](int64_t pipeline) {
    return assumes({{"parallelism",
                     {{"pipeline", pipeline},
                      {"data", nullptr},
                      {"zero_stage", 1},
                      {"overlap_grad_reduce", true},
                      {"overlap_param_gather", true}}}},
                   "the stages gather one after the other");
  };
  EXPECT_TRUE(in_turn(2));
  EXPECT_FALSE(in_turn(1));
}

TEST(Assumptions, SayHowManyGpusOfARackTheJobHas) {
  const auto racks = [](int64_t nodes) {
    return assumes({{"cluster", {{"gpu", "gb200"}, {"nodes", nodes}, {"gpus_per_node", 4}}},
                    {"training", {{"global_batch_size", 4 * nodes}}}},
                   "64 of the 72 GPUs of each of its NVLink domains");
  };
  EXPECT_TRUE(racks(64));
  EXPECT_FALSE(racks(36));  // all 72
  EXPECT_FALSE(racks(16));  // one domain
}

TEST(Assumptions, SayWhichCpusPostToTheNetwork) {
  EXPECT_TRUE(assumes({{"cluster", {{"nodes", 2}}}, {"training", {{"global_batch_size", 16}}}},
                      "CPUs are not AMD's"));
  EXPECT_FALSE(assumes(Json::object(), "CPUs are not AMD's"));
}

/// Whether the estimate of a model says that it leaves out `words`.
bool leaves_out(const char* model,
                int64_t sequence,
                const char* words,
                const char* framework = "plain") {
  const Plan plan = resolve_plan({.tree = Json{{"model", model},
                                               {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}}},
                                               {"training",
                                                {{"sequence_length", sequence},
                                                 {"global_batch_size", 8},
                                                 {"framework", framework}}}},
                                  .context = {}});
  const std::vector<std::string> gaps = gaps_of(plan);
  return std::any_of(gaps.begin(), gaps.end(), [&](const std::string& gap) {
    return gap.find(words) != std::string::npos;
  });
}

// Mistral-7B-v0.1/config.json: sliding_window 4096.
TEST(Gaps, NameASlidingWindowWhereTheSequenceIsLonger) {
  EXPECT_TRUE(leaves_out("mistral-7b", 8192, "sliding window of 4,096 tokens"));
  EXPECT_FALSE(leaves_out("mistral-7b", 4096, "sliding window"));
  EXPECT_TRUE(leaves_out("starcoder2-7b", 8192, "sliding window of 4,096 tokens"));
  EXPECT_FALSE(leaves_out("llama3-8b", 8192, "sliding window"));
}

TEST(Gaps, NameWhatTheLayersOfGemmaHave) {
  EXPECT_TRUE(leaves_out("gemma-7b", 2048, "gemma-7b: the scaled embedding"));
  EXPECT_TRUE(leaves_out("gemma-2b", 2048, "1 + weight"));
}

TEST(Gaps, NameThePackedProductOfTransformers) {
  const char* const packed = "one product for query, key and value";
  EXPECT_TRUE(leaves_out("pythia-1b", 2048, packed, "transformers"));
  EXPECT_FALSE(leaves_out("pythia-1b", 2048, packed, "plain"));
  EXPECT_FALSE(leaves_out("llama3-8b", 2048, packed, "transformers"));
}

TEST(Gaps, AreOfModelsThatAreKnown) {
  for (const char* model :
       {"mistral-7b", "starcoder2-3b", "starcoder2-7b", "starcoder2-15b", "gemma-2b", "gemma-7b"}) {
    EXPECT_NE(find_model_preset(model), nullptr) << model;
  }
}

}  // namespace
}  // namespace estimator
