#include "estimator/cluster/whole_state.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/plan_spec.h"

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
  EXPECT_EQ(state->fewest_gpus, 16);  // 79.19 GiB less the context: 15.0, in machines of 8
}

TEST(WholeState, IsTheSameHoweverRanksShareIt) {
  // Tensor 8 pads the vocabulary of 128,256 to a multiple of 1,024, in embedding and output layer.
  constexpr int64_t kPadded = kParameters + 2 * (129'024 - 128'256) * int64_t{8192};
  const auto shared = state_of(
      plan_of({{"tensor", 8}, {"sequence_parallel", true}, {"zero_stage", 1}}, 4), kPadded / 8, 4);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->bytes(), 18 * kPadded);
}

TEST(WholeState, IsNotKnownWhereRanksDidNotCountIt) {
  const Plan plan = plan_of(Json::object(), 1);
  const RankProfile profile;
  const RankClass all{.count = plan.world_size()};
  EXPECT_FALSE(whole_state(plan, gpu_of(plan.cluster), {all}, {&profile}));
}

}  // namespace
}  // namespace estimator
