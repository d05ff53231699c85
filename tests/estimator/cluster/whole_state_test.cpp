#include "estimator/cluster/whole_state.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/communication/fabric.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

Plan plan_of(Json parallelism, int64_t nodes) {
  return resolve_plan({.tree = Json{{"model", "llama3-70b"},
                                    {"cluster", {{"gpu", "h100-sxm"}, {"nodes", nodes}}},
                                    {"parallelism", std::move(parallelism)}},
                       .context = {}});
}

constexpr int64_t kParameters = 70'553'706'496;  // Llama 3 70B, as Meta publishes it

std::optional<WholeState> state_of(const Plan& plan, int64_t count, int64_t optimizer_shards) {
  RankProfile profile;
  profile.parameters.count = count;
  profile.model_state = {.parameter_bytes = 2 * count,
                         .gradient_bytes = 4 * count,
                         .master_weight_bytes = 4 * count / optimizer_shards,
                         .optimizer_state_bytes = 8 * count / optimizer_shards};
  RankClass all{.count = plan.world_size()};
  return whole_state(plan, gpu_of(plan.cluster), {all}, {&profile});
}

TEST(WholeState, OfEqualRanksIsThatOfOne) {
  const auto state = state_of(plan_of(Json::object(), 1), kParameters, 1);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->parameters, kParameters);
  EXPECT_EQ(state->bytes(), 18 * kParameters);  // 1,182.7 GiB
  EXPECT_EQ(state->fewest_gpus, 16);           // 79.19 GiB less the context: 15.0, in machines of 8
  EXPECT_EQ(state->fewest_gpus_offloaded, 5);  // 6 bytes of each: 394.3 GiB in GPUs of 78.9
}

TEST(WholeState, IsTheSameHoweverRanksShareIt) {
  // Tensor 8 pads the vocabulary of 128,256 to a multiple of 1,024, in embedding and output layer.
  constexpr int64_t kPadded = kParameters + 2 * (129'024 - 128'256) * int64_t{8192};
  const auto shared = state_of(
      plan_of({{"tensor", 8}, {"sequence_parallel", true}, {"zero_stage", 1}}, 4), kPadded / 8, 4);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->bytes(), 18 * kPadded);
}

/// Bytes for each parameter of `state` that all ranks of `plan` keep alike.
std::vector<double> bytes_of_each(const Plan& plan, int64_t count, const ModelStateRecord& state) {
  RankProfile profile;
  profile.parameters.count = count;
  profile.model_state = state;
  const RankClass all{.count = plan.world_size()};
  const auto whole = whole_state(plan, gpu_of(plan.cluster), {all}, {&profile});
  if (!whole) return {};
  const auto each = [&](int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(whole->parameters);
  };
  return {each(whole->parameter_bytes),
          each(whole->gradient_bytes),
          each(whole->master_weight_bytes),
          each(whole->optimizer_state_bytes)};
}

void expect_each(const std::vector<double>& bytes, const std::vector<double>& expected) {
  ASSERT_EQ(bytes.size(), expected.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_NEAR(bytes[i], expected[i], 1e-6) << i;
}

// Two replicas of FSDP2 over 16 ranks: each rank has an eighth in fp32, and there are two of each.
TEST(WholeState, OfReplicasOfFsdpIsThatOfOne) {
  const Plan plan = plan_of({{"zero_stage", 3}, {"num_distributed_optimizer_instances", 2}}, 2);
  constexpr int64_t kOwn = kParameters / 8;
  expect_each(bytes_of_each(plan,
                            kOwn,
                            {.parameter_bytes = 4 * kOwn,
                             .gradient_bytes = 4 * kOwn,
                             .optimizer_state_bytes = 8 * kOwn}),
              {4, 4, 0, 8});
}

// Two instances of the distributed optimizer over 16 ranks: all parameters, an eighth of the state.
TEST(WholeState, OfInstancesOfTheOptimizerIsThatOfOne) {
  const Plan plan = plan_of({{"zero_stage", 1}, {"num_distributed_optimizer_instances", 2}}, 2);
  expect_each(bytes_of_each(plan,
                            kParameters,
                            {.parameter_bytes = 2 * kParameters,
                             .gradient_bytes = 4 * kParameters,
                             .master_weight_bytes = 4 * kParameters / 8,
                             .optimizer_state_bytes = 8 * kParameters / 8}),
              {2, 4, 4, 8});
}

// DeepSpeed's stage 2 over 8 ranks divides the gradients, too.
TEST(WholeState, OfDividedGradientsCountsThemOnce) {
  const Plan plan = resolve_plan({.tree = Json{{"model", "llama3-70b"},
                                               {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}}},
                                               {"parallelism", {{"zero_stage", 2}}},
                                               {"training", {{"framework", "deepspeed"}}}},
                                  .context = {}});
  expect_each(bytes_of_each(plan,
                            kParameters,
                            {.parameter_bytes = 2 * kParameters,
                             .gradient_bytes = 2 * kParameters / 8,
                             .master_weight_bytes = 4 * kParameters / 8,
                             .optimizer_state_bytes = 8 * kParameters / 8}),
              {2, 2, 4, 8});
}

// Gemma ties its output layer to the embedding, of which the last stage keeps a copy with all its
// state.
TEST(WholeState, CountsATiedOutputLayerOnce) {
  const Plan plan =
      resolve_plan({.tree = Json{{"model", "gemma-2b"},
                                 {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}}},
                                 {"parallelism", {{"pipeline", 2}, {"zero_stage", 1}}},
                                 {"training", {{"global_batch_size", 8}}}},
                    .context = {}});
  const int64_t rows = plan.padded_vocab_size(), hidden = plan.model.hidden_size;
  const int64_t all = parameter_count(plan.model, rows);
  const auto profile_of_stage = [&](int64_t count) {
    RankProfile profile;
    profile.parameters.count = count;
    profile.model_state = {.parameter_bytes = 2 * count,
                           .gradient_bytes = 4 * count,
                           .master_weight_bytes = count,
                           .optimizer_state_bytes = 2 * count};
    return profile;
  };
  const RankProfile first = profile_of_stage(all / 2);
  RankProfile last = profile_of_stage(all - all / 2 + rows * hidden);
  last.parameters.tensors = {
      {.name = "output_layer.weight", .shape = {rows, hidden}, .shared_copy = true}};
  const auto state = whole_state(
      plan, gpu_of(plan.cluster), {RankClass{.count = 4}, RankClass{.count = 4}}, {&first, &last});
  ASSERT_TRUE(state);
  EXPECT_NEAR(static_cast<double>(state->bytes()) / static_cast<double>(all), 18, 1e-6);
}

// Four data ranks of each of two stages own parameters of the layer-wise optimizer, and the one
// that was run owns the most: by its state, copies and owners would count too much.
TEST(WholeState, OfMuonIsThatOfItsParameters) {
  const Plan plan =
      resolve_plan({.tree = Json{{"model", "gpt2"},
                                 {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}}},
                                 {"parallelism", {{"pipeline", 2}, {"zero_stage", 1}}},
                                 {"training", {{"optimizer", "muon"}, {"global_batch_size", 8}}}},
                    .context = {}});
  const int64_t rows = plan.padded_vocab_size(), hidden = plan.model.hidden_size;
  const int64_t all = parameter_count(plan.model, rows), of_words = rows * hidden;
  constexpr int64_t kVectors = 121'344;  // biases, and norms
  const auto stage_of = [&](int64_t matrices, int64_t vectors, bool is_copy) {
    RankProfile profile;
    profile.parameters.tensors = {
        {.name = is_copy ? "output_layer.weight" : "embedding.word_embeddings.weight",
         .shape = {rows, hidden},
         .shared_copy = is_copy},
        {.name = "layers", .shape = {matrices / hidden, hidden}},
        {.name = "norms", .shape = {vectors}}};
    profile.parameters.count = of_words + matrices + vectors;
    profile.model_state = {.parameter_bytes = 2 * profile.parameters.count,
                           .gradient_bytes = 4 * profile.parameters.count,
                           .master_weight_bytes = 4 * of_words,
                           .optimizer_state_bytes = 8 * of_words};
    return profile;
  };
  const int64_t matrices = all - of_words - kVectors;
  const RankProfile first = stage_of(matrices / 2, kVectors / 2, false);
  const RankProfile last = stage_of(matrices - matrices / 2, kVectors - kVectors / 2, true);
  const auto state = whole_state(
      plan, gpu_of(plan.cluster), {RankClass{.count = 4}, RankClass{.count = 4}}, {&first, &last});
  ASSERT_TRUE(state);
  EXPECT_EQ(matrices, 85'721'088);
  EXPECT_EQ(state->optimizer_state_bytes, 4 * matrices + 8 * (of_words + kVectors));
  EXPECT_EQ(state->optimizer_state_bytes, 652'922'880);
  EXPECT_EQ(state->master_weight_bytes, 4 * all);
}

TEST(WholeState, IsNotKnownWhereRanksDidNotCountIt) {
  const Plan plan = plan_of(Json::object(), 1);
  const RankProfile profile;
  const RankClass all{.count = plan.world_size()};
  EXPECT_FALSE(whole_state(plan, gpu_of(plan.cluster), {all}, {&profile}));
}

}  // namespace
}  // namespace estimator
