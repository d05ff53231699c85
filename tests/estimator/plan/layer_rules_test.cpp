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

Json predicting(const Json& changes = Json::object()) {
  Json all = {{"model", {{"mtp_num_layers", 1}, {"position_embedding", "rope"}}}};
  all.merge_patch(changes);
  return all;
}

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
      {{{"model", {{"mtp_num_layers", 1}}}},
       {"learned positions", "use --position-embedding-type rope"}},
      {{{"model", {{"mtp_num_layers", -1}}}}, {"model.mtp_num_layers = -1"}},
      {{{"model", {{"mtp_loss_scaling_factor", -0.1}}}}, {"a number is out of range"}},
      {predicting({{"training", {{"framework", "nanotron"}}}}),
       {"not supported for this framework", "megatron-lm or plain"}},
      {predicting({{"parallelism", {{"context", 2}}}}),
       {"does not work with context parallelism",
        "use a context parallel size of 1, or leave out --mtp-num-layers"}},
      {predicting({{"parallelism", {{"zero_stage", 3}}}, {"training", {{"framework", "plain"}}}}),
       {"does not work with FSDP2", "parallelism.zero_stage = 3"}},
      {predicting({{"parallelism", {{"pipeline", 2}, {"defer_embedding_wgrad_compute", true}}}}),
       {"weight gradients of the output layer that wait",
        "leave out --defer-embedding-wgrad-compute"}},
      {predicting({{"parallelism",
                    {{"tensor", 2}, {"sequence_parallel", true}, {"tp_comm_overlap", true}}}}),
       {"does not work with user buffers", "leave out --tp-comm-overlap"}},
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
  EXPECT_EQ(complaint_about(predicting()), "");
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
