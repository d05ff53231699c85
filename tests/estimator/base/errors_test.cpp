#include "estimator/base/errors.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

TEST(UserError, SaysWhatWhereAndTheWayOut) {
  const UserError error({.what = "no such GPU", .where = "cluster.gpu = h101", .help = "use h100"});
  EXPECT_STREQ(error.what(),
               "error: no such GPU\n"
               "  cluster.gpu = h101\n"
               "  help: use h100\n");
  EXPECT_EQ(error.exit_code(), ExitCode::kBadInput);
}

TEST(UserError, ShowsEveryProblemAndLeavesOutEmptyLines) {
  const UserError error({{"first", "", ""}, {"second", "there", ""}}, ExitCode::kMachineLacks);
  EXPECT_STREQ(error.what(), "error: first\nerror: second\n  there\n");
  EXPECT_EQ(error.problems().size(), 2u);
  EXPECT_EQ(static_cast<int>(error.exit_code()), 3);
}

TEST(UserError, ShowsTheFirstOfManyProblemsAndHowManyMoreThereAre) {
  const UserError error(std::vector<Problem>(1000, {"again", "", ""}));
  EXPECT_EQ(error.problems().size(), kMostProblemsShown + 1);
  EXPECT_EQ(error.problems().back().what, "and 980 problems more");
  const UserError retold(error.problems());
  EXPECT_STREQ(retold.what(), error.what());
  EXPECT_EQ(UserError(std::vector<Problem>(21, {"again", "", ""})).problems().back().what, "again");
}

TEST(UserError, CutsLongLines) {
  const std::string text = UserError({"what", std::string(1'000'000, '7'), "help"}).what();
  EXPECT_LT(text.size(), 2000u);
  EXPECT_NE(text.find("(1000000 bytes)"), std::string::npos);
}

TEST(NearestName, IsWithinThreeEdits) {
  const std::vector<std::string> known = {"h100-sxm", "a100-sxm-80", "llama3-8b"};
  EXPECT_EQ(nearest_name("h100-smx", known), "h100-sxm");
  EXPECT_EQ(nearest_name("lama3-8b", known), "llama3-8b");
  EXPECT_EQ(nearest_name("completely-else", known), "");
}

TEST(NearestName, OfAFamilyIsItsFirstMember) {
  EXPECT_EQ(nearest_name("a100", {"h100-sxm", "a100-sxm-80", "a100-pcie-40"}), "a100-sxm-80");
}

TEST(Suggestion, ListsWhatIsKnownWhenNothingIsNear) {
  EXPECT_EQ(suggestion("gpipes", {"1f1b", "gpipe"}), "did you mean gpipe?");
  EXPECT_EQ(suggestion("zerobubble", {"1f1b", "gpipe"}), "known are 1f1b, gpipe");
}

}  // namespace
}  // namespace estimator
