#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/plan/subject_rules.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// One mistake, and words of the message that it must get.
struct BadLayers {
  Json changes;
  std::vector<std::string> words;
};

TEST(LayerRules, SayWhatIsWrongAndTheWayOut) {
  const Json tensor_2 = {{"tensor", 2}, {"tp_linear_async_communication", true}};
  const std::vector<BadLayers> plans = {
      {{{"model", {{"tied_layernorm", true}}}},
       {"one norm for attention and MLP", "add --parallel-residual"}},
      {{{"model", {{"parallel_residual", true}}}},
       {"not supported for this framework", "megatron-deepspeed (GPT-NeoX) or plain"}},
      {{{"model", {{"parallel_residual", true}, {"num_experts", 4}}},
        {"training", {{"framework", "plain"}}}},
       {"do not work with experts", "model.num_experts = 4"}},
      {{{"parallelism", tensor_2}},
       {"only nanotron's", "tp_linear_async_communication, training.framework = megatron-lm"}},
      {{{"parallelism", tensor_2}, {"training", {{"framework", "nanotron"}}}},
       {"REDUCE_SCATTER", "without parallelism.sequence_parallel", "add --sequence-parallel"}},
  };
  for (const BadLayers& plan : plans) {
    SCOPED_TRACE(plan.changes);
    const std::string text = complaint_about(plan.changes);
    EXPECT_NE(text.find("help: "), std::string::npos) << text;
    for (const std::string& words : plan.words) {
      EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
    }
  }
}

// nanotron's files leave the key on where there is one tensor rank.
TEST(LayerRules, LetGoodPlansPass) {
  for (const char* framework : {"plain", "megatron-deepspeed"}) {
    EXPECT_EQ(complaint_about({{"model", {{"parallel_residual", true}, {"tied_layernorm", true}}},
                               {"training", {{"framework", framework}}}}),
              "");
  }
  EXPECT_EQ(complaint_about({{"parallelism", {{"tp_linear_async_communication", true}}},
                             {"training", {{"framework", "nanotron"}}}}),
            "");
}

}  // namespace
}  // namespace estimator
