#include "sim/cli/report/verify_memory.h"

#include <gtest/gtest.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/resolve/resolve_plan.h"

namespace sim {
namespace {

estimator::Plan plan_of(const estimator::Json& changes = estimator::Json::object()) {
  // 1 layer 12 h^2 + 13 h, embedding 64 h tied, 16 positions, final norm 2 h; h = 32.
  estimator::Json tree = estimator::Json::parse(R"({
    "model": {"num_layers": 1, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 64,
              "max_position_embeddings": 16, "tie_embeddings": true},
    "cluster": {"gpu": "a100", "nodes": 1, "gpus_per_node": 2},
    "training": {"sequence_length": 16, "make_vocab_size_divisible_by": 1}})");
  tree.merge_patch(changes);
  return estimator::resolve_plan(tree, {});
}

constexpr int64_t kParameters = 12 * 32 * 32 + 13 * 32 + 64 * 32 + 16 * 32 + 2 * 32;

TEST(VerificationMemory, IsTheStateOfAllRanksAndOfTheWholeModel) {
  // bf16 with AdamW: 2 + 4 replicated, 4 + 8 of the optimizer.
  EXPECT_EQ(least_verification_bytes(plan_of()), kParameters * (2 + 1) * (6 + 12));
  EXPECT_EQ(least_verification_bytes(plan_of({{"parallelism", {{"tensor", 2}}}})),
            kParameters * (1 + 1) * (6 + 12));
  EXPECT_EQ(least_verification_bytes(plan_of({{"parallelism", {{"zero_stage", 1}}}})),
            kParameters * ((2 + 1) * 6 + (1 + 1) * 12));
}

TEST(VerificationMemory, HasTheMomentsOfTheOptimizer) {
  const auto with = [](const char* optimizer) {
    return least_verification_bytes(plan_of({{"training", {{"optimizer", optimizer}}}}));
  };
  EXPECT_EQ(with("sgd"), kParameters * (2 + 1) * (6 + 4 + 4));
  EXPECT_EQ(with("muon"), kParameters * (2 + 1) * (6 + 4 + 4));  // at least
}

TEST(VerificationMemory, ThatIsNotThereIsAMissingPart) {
  const estimator::Plan plan = plan_of();
  const int64_t least = least_verification_bytes(plan);
  EXPECT_NO_THROW(require_memory_for_verification(plan, least));
  try {
    require_memory_for_verification(plan, least - 1);
    FAIL() << "a byte too few";
  } catch (const estimator::UserError& error) {
    EXPECT_EQ(error.exit_code(), estimator::ExitCode::kMachineLacks);
  }
}

}  // namespace
}  // namespace sim
