#include "estimator/cluster/plan_notes.h"

#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> plan_notes_of(const char* model, Json training) {
  return plan_notes(resolve_plan({.tree = Json{{"model", model},
                                               {"cluster", {{"gpu", "h100"}, {"nodes", 1}}},
                                               {"parallelism", {{"tensor", 8}}},
                                               {"training", std::move(training)}},
                                  .context = {}}));
}

TEST(PlanNotes, APlanOfAKnownModelHasNone) {
  EXPECT_THAT(plan_notes_of("llama3-8b", {{"sequence_length", 8192}}), IsEmpty());
}

TEST(PlanNotes, AModelByItsSizeSaysItsShape) {
  EXPECT_THAT(plan_notes_of("13b", Json::object()),
              ElementsAre(HasSubstr("assumed: 13b is only a size")));
  EXPECT_THAT(plan_notes_of("13b", Json::object()),
              ElementsAre(HasSubstr("40 layers of width 5,120")));
}

TEST(PlanNotes, ALossOfThePresetThatTheFrameworkHasNotIsLeftOut) {
  const Json tree = {{"model", "qwen3-30b-a3b"},
                     {"cluster", {{"gpu", "h100"}, {"nodes", 1}}},
                     {"parallelism", {{"zero_stage", 3}}}};
  const Plan plan = resolve_plan({.tree = tree, .context = {}});
  EXPECT_EQ(plan.model.moe_aux_loss_coeff, 0);
  EXPECT_THAT(plan_notes(plan), Contains(HasSubstr("left out: the loss that balances")));
}

TEST(PlanNotes, ADistributedOptimizerOfSgdIsWarnedOf) {
  const auto notes_of = [](int zero_stage) {
    const Json tree = {{"model", "llama3-8b"},
                       {"cluster", {{"gpu", "h100"}, {"nodes", 1}}},
                       {"parallelism", {{"zero_stage", zero_stage}}},
                       {"training", {{"optimizer", "sgd"}}}};
    return plan_notes(resolve_plan({.tree = tree, .context = {}}));
  };
  EXPECT_THAT(notes_of(1), ElementsAre(HasSubstr("stops at SGD")));
  EXPECT_THAT(notes_of(0), IsEmpty());
}

TEST(PlanNotes, ASequenceBeyondThePositionsIsNoted) {
  EXPECT_THAT(plan_notes_of("llama3-8b", {{"sequence_length", 16'384}}),
              ElementsAre(HasSubstr("16,384 is longer than the model's 8,192 positions")));
}

TEST(PlanNotes, ModulesThatAreNotRecomputedAreNoted) {
  Json training = {{"sequence_length", 8192}, {"recompute_modules", {"mlp"}}};
  EXPECT_THAT(plan_notes_of("llama3-8b", training),
              ElementsAre(HasSubstr("no effect with recompute none")));
  training["recompute"] = "selective";
  EXPECT_THAT(plan_notes_of("llama3-8b", training), IsEmpty());
}

// Without dropout 2 a s / h = 2 x 32 x 8,192 / 4,096 = 128 > 34; 2 x 32 x 8,192^2 bytes = 4 GiB,
// for each of 8 tensor ranks.
TEST(PlanNotes, ScoresThatUnfusedAttentionKeepsAreNoted) {
  EXPECT_THAT(plan_notes_of("llama3-8b", {{"sequence_length", 8192}, {"attention", "unfused"}}),
              ElementsAre(HasSubstr("keeps about 0.50 GiB of scores in each layer")));
  EXPECT_THAT(
      plan_notes_of(
          "llama3-8b",
          {{"sequence_length", 8192}, {"attention", "unfused"}, {"recompute", "selective"}}),
      IsEmpty());
  EXPECT_THAT(plan_notes_of("llama3-8b", {{"sequence_length", 512}, {"attention", "unfused"}}),
              IsEmpty());  // 8 < 34
}

TEST(PlanNotes, AttentionThatHasMostOfTheFlopsIsNoted) {
  EXPECT_THAT(plan_notes_of("llama3.2-1b", {{"sequence_length", 131'072}}),
              ElementsAre(HasSubstr("% of the model's FLOPs")));
}

// One data rank reduces nothing.
TEST(PlanNotes, AGradientThatIsReducedBeforeItIsWholeIsNoted) {
  const auto notes = [](int64_t gpus, bool overlaps) {
    return plan_notes(resolve_plan(
        {.tree = Json{{"model", "llama3-8b"},
                      {"cluster", {{"gpu", "h100"}, {"nodes", 1}, {"gpus_per_node", gpus}}},
                      {"parallelism",
                       {{"pipeline", 2},
                        {"overlap_grad_reduce", overlaps},
                        {"defer_embedding_wgrad_compute", true}}},
                      {"training", {{"sequence_length", 8192}}}},
         .context = {}}));
  };
  EXPECT_THAT(notes(8, true), ElementsAre(HasSubstr("before --defer-embedding-wgrad-compute")));
  EXPECT_THAT(notes(8, false), IsEmpty());
  EXPECT_THAT(notes(2, true), IsEmpty());
}

TEST(PlanNotes, TheTimeOfAnEmptiedCacheIsNoted) {
  const Json training = {{"sequence_length", 8192}, {"empty_unused_memory_level", 1}};
  EXPECT_THAT(plan_notes_of("llama3-8b", training),
              ElementsAre(HasSubstr("--empty-unused-memory-level makes in each iteration")));
}

TEST(PlanNotes, MachinesWithMoreGpusThanTheirNvlinkJoinsAreNoted) {
  const auto notes = [](const char* gpu, int64_t gpus, const char* link) {
    Json cluster = {{"gpu", gpu}, {"nodes", 1}, {"gpus_per_node", gpus}};
    if (*link) cluster["intra_link"] = link;
    return plan_notes(resolve_plan({.tree = Json{{"model", "llama3-8b"},
                                                 {"cluster", cluster},
                                                 {"training", {{"sequence_length", 8192}}}},
                                    .context = {}}));
  };
  EXPECT_THAT(notes("h100", 256, ""),
              ElementsAre(HasSubstr("256 GPUs of a machine all reach each other over nvlink4")));
  EXPECT_THAT(notes("gh200", 4, ""), ElementsAre(HasSubstr("joins none of gh200")));
  EXPECT_THAT(notes("gb200", 32, ""), IsEmpty());
  EXPECT_THAT(notes("gh200", 4, "pcie5x16"), IsEmpty());
}

}  // namespace
}  // namespace estimator
