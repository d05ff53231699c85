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
  const std::vector<BadLayers> plans = {
      {{{"model", {{"tied_layernorm", true}}}},
       {"one norm for attention and MLP", "add --parallel-residual"}},
      {{{"model", {{"parallel_residual", true}}}},
       {"not supported for this framework", "megatron-deepspeed (GPT-NeoX) or plain"}},
      {{{"model", {{"parallel_residual", true}, {"num_experts", 4}}},
        {"training", {{"framework", "plain"}}}},
       {"do not work with experts", "model.num_experts = 4"}},
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

TEST(LayerRules, LetGoodPlansPass) {
  for (const char* framework : {"plain", "megatron-deepspeed"}) {
    EXPECT_EQ(complaint_about({{"model", {{"parallel_residual", true}, {"tied_layernorm", true}}},
                               {"training", {{"framework", framework}}}}),
              "");
  }
}

}  // namespace
}  // namespace estimator
