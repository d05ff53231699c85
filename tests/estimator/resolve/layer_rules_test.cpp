#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/plan/attention_choice.h"
#include "estimator/resolve/subject_rules.h"
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

Json with_sinks(const Json& changes = Json::object()) {
  Json all = {{"model", {{"softmax_type", "learnable"}}}};
  all.merge_patch(changes);
  return all;
}

TEST(LayerRules, SayWhatIsWrongAndTheWayOut) {
  const Json tensor_2 = {{"tensor", 2}, {"tp_linear_async_communication", true}};
  const std::vector<BadLayers> plans = {
      {{{"model", {{"tied_layernorm", true}}}},
       {"one norm for attention and MLP", "add --parallel-residual"}},
      {{{"model", {{"parallel_residual", true}}}, {"training", {{"framework", "megatron-lm"}}}},
       {"not supported for this framework",
        "megatron-deepspeed (GPT-NeoX), transformers, deepspeed or plain"}},
      {{{"model", {{"norm_position", "after"}}}, {"training", {{"framework", "megatron-lm"}}}},
       {"norms after attention and MLP are not supported",
        "model.norm_position, training.framework = megatron-lm",
        "transformers, deepspeed or plain"}},
      {{{"model", {{"add_output_bias", true}}}, {"training", {{"framework", "torchtitan"}}}},
       {"biases of the output layer are not supported", "model.add_output_bias"}},
      {{{"model", {{"normalization", "RMSNorm"}, {"norm_parameters", "weight"}}}},
       {"an RMSNorm has no bias", "norm_parameters = weight"}},
      {{{"model", {{"norm_position", "both"}, {"parallel_residual", true}}}},
       {"have norms before them alone", "norm_position = both"}},
      {{{"model", {{"qk_layernorm_whole", true}}}},
       {"over what the norms", "without model.qk_layernorm", "add --qk-layernorm"}},
      {{{"model", {{"qk_layernorm", true}, {"qk_layernorm_whole", true}}},
        {"parallelism", {{"tensor", 2}}}},
       {"a norm over all heads", "parallelism.tensor = 2"}},
      {{{"model", {{"no_rope_freq", {0, 1, 0}}, {"position_embedding", "rope"}}}},
       {"which layers are meant is not clear", "model.no_rope_freq has 3 numbers"}},
      {{{"model", {{"no_rope_freq", {2}}}}},
       {"which layers lack the rotary positions", "position_embedding = learned_absolute"}},
      {{{"model", {{"sliding_window", 16}, {"attention_dropout", 0}}},
        {"training", {{"framework", "megatron-lm"}, {"attention", "flash"}}}},
       {"shorter than the sequence", "model.sliding_window = 16", "--sliding-window 0"}},
      {{{"model", {{"sliding_window", 16}, {"attention_dropout", 0.1}}},
        {"training", {{"framework", "megatron-lm"}}}},
       {"shorter than the sequence", "model.attention_dropout = 0.1", "--attention-dropout 0"}},
      {{{"model", {{"sliding_window", 16}}},
        {"parallelism", {{"context", 2}}},
        {"training", {{"framework", "plain"}}}},
       {"shorter than the sequence", "parallelism.context = 2"}},
      {{{"model", {{"sliding_window", 16}, {"attention_dropout", 0}}},
        {"parallelism", {{"context", 2}}},
        {"training", {{"framework", "megatron-lm"}}}},
       {"shorter than the sequence", "context_comm = p2p", "--cp-comm-type a2a"}},
      {with_sinks({{"training", {{"framework", "torchtitan"}}}}),
       {"a learned number in each head's softmax", "training.framework = torchtitan"}},
      {with_sinks({{"training", {{"attention", "flash"}}}}),
       {"a learned number in each head's softmax", "use --attention-backend fused"}},
      {with_sinks({{"training", {{"deterministic_mode", true}}}}),
       {"a learned number in each head's softmax", "training.deterministic_mode"}},
      {with_sinks({{"parallelism", {{"context", 2}}}}),
       {"a learned number in each head's softmax", "use --cp-comm-type a2a"}},
      {{{"model", {{"glu_linear_offset", 1}}}},
       {"belong to the activation quick_geglu", "add --quick-geglu"}},
      {{{"model", {{"activation", "quick_geglu"}}}, {"training", {{"framework", "torchtitan"}}}},
       {"quick_geglu is not supported for this framework", "megatron-lm or plain"}},
      {{{"model", {{"activation", "quick_geglu"}}}},
       {"fuses quick_geglu in experts alone", "add --no-bias-gelu-fusion"}},
      {{{"model", {{"window_attn_skip_freq", {0, 1, 0}}}}},
       {"which layers are meant is not clear", "model.window_attn_skip_freq has 3 numbers"}},
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
  EXPECT_EQ(complaint_about({{"model", {{"norm_position", "after"}, {"add_mlp_bias", true}}}}), "");
  EXPECT_EQ(complaint_about(predicting({{"model", {{"no_rope_freq", {2}}}}})), "");
  EXPECT_EQ(
      complaint_about(with_sinks({{"model", {{"sliding_window", 16}, {"attention_dropout", 0}}},
                                  {"parallelism", {{"context", 2}, {"context_comm", "a2a"}}}})),
      "");
  EXPECT_EQ(complaint_about({{"parallelism", {{"tp_linear_async_communication", true}}},
                             {"training", {{"framework", "nanotron"}}}}),
            "");
}

TEST(LayerRules, TakeAWindowThatIsNotShorterThanTheSequence) {
  const int64_t sequence = small_plan().sequence_length();
  const auto complaint = [](int64_t window, const char* framework) {
    return complaint_about({{"model", {{"sliding_window", window}, {"attention_dropout", 0}}},
                            {"training", {{"framework", framework}}}});
  };
  EXPECT_EQ(complaint(sequence, "torchtitan"), "");
  EXPECT_NE(complaint(sequence - 1, "torchtitan"), "");
  for (const char* framework : {"transformers", "plain", "megatron-lm"}) {
    EXPECT_EQ(complaint(sequence - 1, framework), "") << framework;
  }
}

// _ignore_causal_mask_sdpa in masking_utils.py of transformers asks for a sequence that is shorter
// than the window.
TEST(WindowMasks, AreMadeForLongSequences) {
  const int64_t sequence = small_plan().sequence_length();
  const auto made = [](int64_t window, const char* framework) {
    return makes_window_mask(
        small_plan({{"model", {{"sliding_window", window}, {"attention_dropout", 0}}},
                    {"training", {{"framework", framework}}}}));
  };
  EXPECT_FALSE(made(0, "transformers"));
  EXPECT_TRUE(made(sequence, "transformers"));
  EXPECT_FALSE(made(sequence + 1, "transformers"));
  EXPECT_TRUE(made(sequence - 1, "plain"));
  EXPECT_FALSE(made(sequence, "plain"));
  EXPECT_FALSE(made(sequence - 1, "megatron-lm"));  // cuDNN's kernel has a window
}

// Megatron-LM and TorchTitan do not have them.
TEST(Defaults, TakeAFrameworkThatHasTheLayers) {
  const auto framework = [](const char* position, int64_t zero_stage) {
    return small_plan({{"model", {{"norm_position", position}}},
                       {"parallelism", {{"zero_stage", zero_stage}}}})
        .training.framework.value();
  };
  EXPECT_EQ(framework("before", 0), Framework::kMegatronLm);
  EXPECT_EQ(framework("after", 0), Framework::kPlain);
  EXPECT_EQ(framework("before", 3), Framework::kTorchtitan);
  EXPECT_EQ(framework("after", 3), Framework::kTransformers);
  const auto in_window = [](const char* gpu) {
    return small_plan({{"model", {{"sliding_window", 4}, {"attention_dropout", 0}}},
                       {"cluster", {{"gpu", gpu}}}})
        .training.framework.value();
  };
  EXPECT_EQ(in_window("a100"), Framework::kPlain);
  EXPECT_EQ(in_window("h100"), Framework::kMegatronLm);  // cuDNN's kernel
}

}  // namespace
}  // namespace estimator
