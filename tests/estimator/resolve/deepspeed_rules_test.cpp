#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/resolve/subject_rules.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

Json deepspeed(const Json& parallelism, Json training = Json::object()) {
  training["framework"] = "deepspeed";
  Json zero = parallelism;
  if (!zero.contains("zero_stage")) zero["zero_stage"] = 3;
  return {{"parallelism", zero},
          {"training", training},
          {"model", {{"add_bias_linear", false}, {"position_embedding", "rope"}}},
          {"cluster", {{"nodes", 1}, {"gpus_per_node", 8}}}};
}

struct RefusedPlan {
  Json plan;
  std::vector<std::string> words;
};

TEST(DeepspeedRules, SayWhatIsWrongAndTheWayOut) {
  const std::vector<RefusedPlan> plans = {
      {deepspeed({{"tensor", 2}}), {"data parallelism alone", "parallelism.tensor = 2"}},
      {deepspeed({{"pipeline", 2}}), {"data parallelism alone", "parallelism.pipeline = 2"}},
      {deepspeed({{"context", 2}}), {"data parallelism alone", "parallelism.context = 2"}},
      {deepspeed({{"zero_stage", 0}}), {"without ZeRO", "--zero-stage 1, 2 or 3"}},
      {deepspeed(Json::object(), {{"dtype", "fp32"}}), {"16-bit parameters", "bf16 or fp16"}},
      {deepspeed(Json::object(), {{"optimizer", "sgd"}}), {"with AdamW only", "use adamw"}},
      {deepspeed({{"overlap_grad_reduce", true}}), {"other frameworks", "--overlap-comm"}},
      {{{"parallelism", {{"overlap_comm", true}}}}, {"belongs to DeepSpeed", "overlap_comm"}},
      {{{"parallelism", {{"reduce_bucket_size", 5}}}}, {"reduce_bucket_size, training.framework"}},
      {{{"parallelism", {{"sub_group_size", 5}}}}, {"sub_group_size, training.framework"}},
  };
  for (const RefusedPlan& bad : plans) {
    const std::string text = complaint_about(bad.plan);
    for (const std::string& words : bad.words) {
      EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
    }
  }
}

// trainer_config_finalize in transformers/integrations/deepspeed.py: h^2, int(0.9 h^2), 10 h.
TEST(DeepspeedDefaults, AreThoseThatTheTrainerPutsInThePlaceOfAuto) {
  const Plan plan = small_plan(deepspeed(Json::object()));
  const ParallelConfig& p = plan.parallelism;
  const int64_t h = plan.model.hidden_size;
  EXPECT_EQ(p.reduce_bucket_size, h * h);
  EXPECT_EQ(p.stage3_prefetch_bucket_size, 9 * h * h / 10);
  EXPECT_EQ(p.stage3_param_persistence_threshold, 10 * h);
  EXPECT_TRUE(p.overlap_comm);
  EXPECT_FALSE(plan.fully_sharded());
}

TEST(DeepspeedDefaults, OverlapOnlyInStageThree) {
  EXPECT_FALSE(small_plan(deepspeed({{"zero_stage", 2}})).parallelism.overlap_comm);
  EXPECT_TRUE(
      small_plan(deepspeed({{"zero_stage", 2}, {"overlap_comm", true}})).parallelism.overlap_comm);
}

}  // namespace
}  // namespace estimator
