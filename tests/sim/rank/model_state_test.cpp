// Parameter, gradient, master weight and optimizer bytes against closed formulas. n: parameters of
// the shard; bf16 with AdamW: 2 n, 4 n, 4 n, 8 n, the last two divided over the data ranks by the
// distributed optimizer (Rajbhandari et al. 2020, Megatron-LM's 18 and 6 + 12 / d bytes).
#include <gtest/gtest.h>

#include "estimator/plan/model_config.h"
#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::Json;

// hidden 1024, 2 layers: each 12 h^2 + 13 h; embedding 1024 x h tied; positions 512 x h; norm 2 h.
constexpr int64_t kGptParameters = 2 * (12 * 1024 * 1024 + 13 * 1024) + (1024 + 512 + 2) * 1024;

TEST(ModelState, OfBf16AdamwIsEighteenBytesForEachParameter) {
  const auto profile = execute(gpt_plan({{"training", {{"dtype", "bf16"}}}}));
  EXPECT_EQ(profile.parameters.count, kGptParameters);
  EXPECT_EQ(profile.model_state->parameter_bytes, 2 * kGptParameters);
  EXPECT_EQ(profile.model_state->gradient_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->master_weight_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 8 * kGptParameters);
  EXPECT_EQ(profile.model_state->gradient_padding_bytes, 0);
}

TEST(ModelState, OfFp32HasNoMasterWeights) {
  const auto profile = execute(gpt_plan({{"training", {{"dtype", "fp32"}}}}));
  EXPECT_EQ(profile.model_state->parameter_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->master_weight_bytes, 0);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 8 * kGptParameters);
}

TEST(ModelState, OfSgdIsOneMomentum) {
  const auto profile = execute(gpt_plan({{"training", {{"optimizer", "sgd"}}}}));
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->step_scalar_bytes, 0);
}

TEST(ModelState, OfTheDistributedOptimizerIsDividedOverTheDataRanks) {
  // All parameters are multiples of 64 elements and their sum one of lcm(4, 128): no padding.
  const auto profile = execute(
      gpt_plan({{"cluster", {{"gpus_per_node", 4}}}, {"parallelism", {{"zero_stage", 1}}}}));
  EXPECT_EQ(profile.model_state->parameter_bytes, 2 * kGptParameters);
  EXPECT_EQ(profile.model_state->gradient_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->master_weight_bytes, 4 * kGptParameters / 4);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 8 * kGptParameters / 4);
  EXPECT_EQ(profile.model_state->parameter_padding_bytes, 0);
}

// The same plan allocates four bytes less for each of its own elements, and a scale of 512 bytes
// for each of their moments.
TEST(ModelState, OfMomentsInBf16IsFourBytesForEachParameter) {
  const auto with = [](const char* dtype) {
    return execute(
        gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                  {"parallelism", {{"zero_stage", 1}}},
                  {"training", {{"exp_avg_dtype", dtype}, {"exp_avg_sq_dtype", dtype}}}}));
  };
  const auto usual = with("fp32"), narrow = with("bf16");
  EXPECT_EQ(narrow.model_state->master_weight_bytes, 4 * kGptParameters / 4);
  EXPECT_EQ(narrow.model_state->optimizer_state_bytes, 4 * kGptParameters / 4);
  const int64_t scales =
      (narrow.model_state->step_scalar_bytes - usual.model_state->step_scalar_bytes) / 4;
  EXPECT_GT(scales, 0);
  EXPECT_EQ(scales % 2, 0);
  EXPECT_NEAR(static_cast<double>(usual.phases.back().after.allocated_bytes -
                                  narrow.phases.back().after.allocated_bytes),
              static_cast<double>(4 * kGptParameters / 4 - 512 * scales),
              512.0 * static_cast<double>(scales));  // each moment is rounded up to 512 bytes
}

// Megatron-LM copies its part of the sums to fp32 for the step, and drops the copies when the next
// iteration begins (zero_grad() of megatron/core/optimizer/distrib_optimizer.py).
void expect_short_gradients(const char* dtype) {
  SCOPED_TRACE(dtype);
  const auto with = [&](bool in_16_bits) {
    return execute(
        gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                  {"parallelism", {{"zero_stage", 1}}},
                  {"training", {{"dtype", dtype}, {"grad_reduce_in_bf16", in_16_bits}}}}));
  };
  const auto usual = with(false), reduced = with(true);
  EXPECT_EQ(reduced.model_state->gradient_bytes, 2 * kGptParameters);
  EXPECT_EQ(reduced.model_state->master_weight_bytes, usual.model_state->master_weight_bytes);
  const auto after_step = [](const auto& profile) {
    return profile.phases.back().after.allocated_bytes;
  };
  EXPECT_EQ(after_step(reduced) - after_step(usual), (4 / 4 - 2) * kGptParameters);
}

TEST(ModelState, OfGradientsIn16BitsIsTwoBytesForEachAndTheStepsCopies) {
  expect_short_gradients("bf16");
  expect_short_gradients("fp16");
}

TEST(ModelState, OfTwoInstancesIsDividedOverTheRanksOfOne) {
  const auto profile = execute(
      gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                {"parallelism", {{"zero_stage", 1}, {"num_distributed_optimizer_instances", 2}}}}));
  EXPECT_EQ(profile.model_state->gradient_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->master_weight_bytes, 4 * kGptParameters / 2);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 8 * kGptParameters / 2);
}

// Without biases of linear layers and with rotary positions: all parameters are multiples of 4
// elements. DeepSpeed keeps gradients in the parameters' type; in stage 3 all is divided.
TEST(ModelState, OfDeepspeedIsDividedAsZeroSays) {
  constexpr int64_t kParameters = 2 * (12 * 1024 * 1024 + 4 * 1024) + (1024 + 2) * 1024;
  const auto state = [](int64_t stage) {
    return *execute(gpt_plan({{"model",
                               {{"add_bias_linear", false},
                                {"position_embedding", "rope"},
                                {"attention_dropout", 0}}},
                              {"cluster", {{"gpus_per_node", 4}}},
                              {"parallelism", {{"zero_stage", stage}}},
                              {"training", {{"framework", "deepspeed"}, {"dtype", "bf16"}}}}))
                .model_state;
  };
  EXPECT_EQ(state(1).gradient_bytes, 2 * kParameters);
  EXPECT_EQ(state(2).parameter_bytes, 2 * kParameters);
  EXPECT_EQ(state(3).parameter_bytes, 2 * kParameters / 4);
  EXPECT_EQ(state(3).gradient_bytes, 2 * kParameters / 4);
  for (const int64_t stage : {1, 2, 3}) {
    EXPECT_EQ(state(stage).master_weight_bytes, 4 * kParameters / 4) << stage;
    EXPECT_EQ(state(stage).optimizer_state_bytes, 8 * kParameters / 4) << stage;
  }
}

// Matrices: 12 h^2 in each layer and the positions; AdamW has the tied embedding, 13 h of each
// layer and the last norm.
constexpr int64_t kGptMatrices = (2 * 12 * 1024 + 512) * 1024;

TEST(ModelState, OfMuonIsOneMomentumOfEachMatrix) {
  const auto profile =
      execute(gpt_plan({{"training", {{"optimizer", "muon"}, {"dtype", "bf16"}}}}));
  EXPECT_EQ(profile.model_state->master_weight_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes,
            4 * kGptMatrices + 8 * (kGptParameters - kGptMatrices));
}

TEST(ModelState, PaddingIsATermOfItsOwn) {
  // 3 data ranks: the buffer ends at a multiple of 384.
  const auto profile = execute(gpt_plan({{"cluster", {{"gpus_per_node", 3}}},
                                         {"training", {{"global_batch_size", 12}}},
                                         {"parallelism", {{"zero_stage", 1}}}}));
  const int64_t padding = (384 - kGptParameters % 384) % 384;
  EXPECT_EQ(profile.model_state->gradient_bytes, 4 * kGptParameters);
  EXPECT_EQ(profile.model_state->gradient_padding_bytes, 4 * padding);
  EXPECT_EQ(profile.model_state->parameter_padding_bytes, 2 * padding);
}

TEST(ModelState, OfTheMegatronFrameworkHasAGradientStandInForEachShapeOfWeight) {
  // qkv 3 h x h, projection h x h, MLP 4 h x h and h x 4 h, in fp16; the layers share them. The
  // output layer is Megatron-LM's own, vocabulary x h, and takes TransformerEngine's too (HAVE_TE
  // in LinearWithGradAccumulationAndAsyncCommunication of core/tensor_parallel/layers.py).
  constexpr int64_t kVocabulary = 2048;
  const Json model = {{"vocab_size", kVocabulary}};
  const auto megatron = execute(gpt_plan({{"model", model}})).model_state.value();
  EXPECT_EQ(megatron.gradient_stand_in_bytes,
            2 * ((3 + 1 + 4 + 4) * 1024 * 1024 + kVocabulary * 1024));
  // Before core 0.14 it dropped its own at once.
  const Json training = {{"megatron_core", "0.13.1"}};
  const auto older =
      execute(gpt_plan({{"model", model}, {"training", training}})).model_state.value();
  EXPECT_EQ(older.gradient_stand_in_bytes, 2 * (3 + 1 + 4 + 4) * 1024 * 1024);
  const auto plain =
      execute(gpt_plan({{"training", {{"framework", "plain"}}}})).model_state.value();
  EXPECT_EQ(plain.gradient_stand_in_bytes, 0);
}

TEST(ModelState, IsWhatTheAllocatorHoldsBetweenIterations) {
  // After the first step, what is allocated is the state and, listed: two cuBLAS workspaces (one
  // for each thread) of 8,519,680 bytes on capability 8.0, cuBLASLt's of 1 MiB (it adds the
  // biases), the causal mask s^2, a step scalar for each parameter, and the loss. All are whole
  // 512-byte blocks.
  const auto profile =
      execute(gpt_plan({{"training", {{"dtype", "fp16"}, {"framework", "plain"}}}}));
  const auto& state = *profile.model_state;
  const int64_t named = state.parameter_bytes + state.gradient_bytes + state.master_weight_bytes +
                        state.optimizer_state_bytes + 2 * 8'519'680 + 1'048'576 + 512 * 512;
  const int64_t step_scalars = 512 * static_cast<int64_t>(profile.parameters.tensors.size());
  EXPECT_EQ(profile.phases.back().after.allocated_bytes, named + step_scalars + 512);
}

}  // namespace
}  // namespace sim
