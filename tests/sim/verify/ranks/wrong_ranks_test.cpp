// A shard that is wrong in one place is found there.
#include <gmock/gmock.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "tests/paths.h"
#include "tests/sim/verify/ranks/verify_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;
using testing::Not;

class WrongRanks : public VerifyProgram {
 protected:
  Verification verify_with_fault(const std::string& fault,
                                 int exit_code = 4,
                                 const Json& training = Json::object()) {
    environment_["ONERANK_RANK_PROCESS"] = tests::kFaultyRank;
    environment_["TEST_FAULT"] = fault;
    const Json changes = {{"parallelism", {{"tensor", 2}, {"data", 2}}}, {"training", training}};
    return verify(write_plan(4, changes), exit_code);
  }

  static bool has(const RankVerification& rank, Claim claim) {
    const auto& kept = rank.differences.kept;
    return std::any_of(
        kept.begin(), kept.end(), [&](const auto& each) { return each.claim == claim; });
  }
};

TEST_F(WrongRanks, AreEqualWithoutAFault) { EXPECT_TRUE(verify_with_fault("none", 0).equal); }

TEST_F(WrongRanks, AFlippedSignIsFoundInTheTensors) {
  const Verification verification = verify_with_fault("flip-sign");
  EXPECT_FALSE(verification.equal);
  for (const RankVerification& rank : verification.ranks) {
    EXPECT_TRUE(has(rank, Claim::kTensors));
    EXPECT_FALSE(has(rank, Claim::kCollectives));
    EXPECT_FALSE(has(rank, Claim::kMemory));
  }
}

/// One wrong sum of an iteration, in a type whose rounding alone is percents.
class WrongSums : public WrongRanks, public testing::WithParamInterface<const char*> {};

TEST_P(WrongSums, AreFoundInSpiteOfRounding) {
  for (const char* dtype : {"bf16", "fp16"}) {
    SCOPED_TRACE(dtype);
    const Verification verification =
        verify_with_fault(GetParam(), 4, {{"dtype", dtype}, {"attention", "flash"}});
    ASSERT_FALSE(verification.ranks.empty());
    for (const RankVerification& rank : verification.ranks) {
      EXPECT_TRUE(has(rank, Claim::kTensors));
      EXPECT_GT(rank.largest_error, 3);  // far from what is allowed
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults,
                         WrongSums,
                         testing::Values("flip-sign", "halve", "wrong-slice", "drop-collective"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(WrongRanks, ADroppedCollectiveIsNamedOnEachRank) {
  const Verification verification = verify_with_fault("drop-collective");
  ASSERT_FALSE(verification.ranks.empty());
  for (const RankVerification& rank : verification.ranks) {
    const Difference& first = rank.differences.kept.at(0);
    EXPECT_EQ(first.claim, Claim::kCollectives);
    EXPECT_EQ(first.where, "call 8");  // calls 0 to 8 are alike: one of them, the third, is missing
    EXPECT_THAT(first.expected,
                HasSubstr("all_reduce of 2,048 bytes of Float over the tensor group"));
    EXPECT_EQ(first.found, "no call here");
    EXPECT_TRUE(has(rank, Claim::kTensors));
  }
}

TEST_F(WrongRanks, SwappedGroupsAreNamedWithTheirMembers) {
  const Verification verification = verify_with_fault("swap-groups");
  const Difference& first = verification.ranks.at(0).differences.kept.at(0);
  EXPECT_EQ(first.where, "call 0");
  EXPECT_THAT(first.expected, HasSubstr("over the tensor group (ranks 0, 1)"));
  EXPECT_THAT(first.found, HasSubstr("over the data_context group (ranks 0, 2)"));
}

TEST_F(WrongRanks, AreListedInWords) {
  environment_["ONERANK_RANK_PROCESS"] = tests::kFaultyRank;
  environment_["TEST_FAULT"] = "drop-collective";
  const std::string plan = write_plan(2, {{"parallelism", {{"tensor", 2}}}});
  const ProgramResult result = run({"verify", plan});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.output, HasSubstr("different: 2 real ranks over Gloo"));
  EXPECT_THAT(result.output, HasSubstr("rank 1, collectives, call 8\n  stub: all_reduce of"));
  EXPECT_THAT(result.output, HasSubstr("\n  real rank: no call here\n"));
  EXPECT_THAT(result.output, HasSubstr("rank 0, tensors, gradient of "));
}

}  // namespace
}  // namespace sim
