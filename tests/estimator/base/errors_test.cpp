#include "estimator/base/errors.h"

#include <gmock/gmock.h>

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

TEST(UserError, NamesTheSignalThatEndedAProcess) {
  const UserError error =
      killed_error("rank 3", 9, "--ranks", help_for_killed(9, "try --jobs 1", "report it"));
  EXPECT_STREQ(error.what(),
               "error: rank 3 was killed by signal 9 (Killed)\n"
               "  --ranks\n"
               "  help: probably this machine ran out of memory: try --jobs 1\n");
  EXPECT_EQ(error.exit_code(), ExitCode::kMachineLacks);
  EXPECT_EQ(help_for_killed(11, "try --jobs 1", "report it"), "report it");
  EXPECT_EQ(help_for_killed(9, "", "report it"), "probably this machine ran out of memory");
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

TEST(UserError, ShowsWhatATerminalWouldObey) {
  const UserError error({"unknown key", "e.yaml: \x1b]0;pwn\a", "did you mean\xff name?"});
  EXPECT_STREQ(error.what(),
               "error: unknown key\n"
               "  e.yaml: \\u001b]0;pwn\\u0007\n"
               "  help: did you mean\\xff name?\n");
}

TEST(NearestName, IsWithinAsManyEditsAsItsLengthAllows) {
  const std::vector<std::string> known = {"h100-sxm", "a100-sxm-80", "llama3-8b", "t4", "b300"};
  EXPECT_EQ(nearest_name("h100-smx", known), "h100-sxm");
  EXPECT_EQ(nearest_name("lama3-8b", known), "llama3-8b");
  EXPECT_EQ(nearest_name("a100-smx-8", known), "a100-sxm-80");  // three edits of ten letters
  EXPECT_EQ(nearest_name("completely-else", known), "");
  EXPECT_EQ(nearest_name("mi300x", known), "");  // three edits of six letters
  EXPECT_EQ(nearest_name("b3000", known), "b300");
  EXPECT_EQ(nearest_name("qwen3-235b", {"qwen3-32b", "qwen3-235b-a22b"}), "qwen3-235b-a22b");
  EXPECT_EQ(nearest_name("qwen3-31b", {"qwen3-32b", "qwen3-31b-a22b"}), "qwen3-32b");
}

TEST(NearestName, OfAFlagCountsNoDashes) {
  const std::vector<std::string> known = {"--tp", "--pp", "--gbs"};
  EXPECT_EQ(nearest_name("--tpp", known), "--tp");
  EXPECT_EQ(nearest_name("--fp", known), "--tp");
  EXPECT_EQ(nearest_name("--lr", known), "");
  EXPECT_EQ(nearest_name("--GBS", known), "--gbs");
}

TEST(NearestName, OfNothingIsNothing) {
  EXPECT_EQ(nearest_name("", {"t4", "h100-sxm"}), "");
  EXPECT_EQ(suggestion("", {"t4", "h100-sxm"}), "known are t4, h100-sxm");
}

TEST(NearestName, OfAFamilyIsItsFirstMember) {
  EXPECT_EQ(nearest_name("a100", {"h100-sxm", "a100-sxm-80", "a100-pcie-40"}), "a100-sxm-80");
}

TEST(NearestName, IsAWordOfALongerName) {
  const std::vector<std::string> known = {"llama-3.1-70b", "llama3-70b", "gpt-3"};
  EXPECT_EQ(nearest_name("meta-llama/Llama-3.1-70B-Instruct", known), "llama-3.1-70b");
  EXPECT_EQ(nearest_name("gpt-35-turbo-16k", known), "");
}

TEST(Suggestion, SaysByNameWhatIsNotModelled) {
  EXPECT_EQ(suggestion("--e4m3", {"--tp"}),
            "training in 8 bits has flags of its own beside --bf16: use --fp8-format hybrid "
            "--fp8-recipe tensorwise (with --framework megatron-lm)");
  EXPECT_THAT(suggestion("mi300x", {"b300"}), testing::StartsWith("AMD's GPUs are not played"));
  EXPECT_THAT(suggestion("lora_rank", {"q_lora_rank"}), testing::HasSubstr("adapters"));
}

TEST(Suggestion, EndsWithWhatTheCallerSaysWhereAListWouldBeLong) {
  EXPECT_EQ(suggestion("xyzzy", {"a", "b"}, "see `onerank list gpus`"), "see `onerank list gpus`");
}

TEST(Suggestion, ListsWhatIsKnownWhenNothingIsNear) {
  EXPECT_EQ(suggestion("gpipes", {"1f1b", "gpipe"}), "did you mean gpipe?");
  EXPECT_EQ(suggestion("zerobubble", {"1f1b", "gpipe"}), "known are 1f1b, gpipe");
}

}  // namespace
}  // namespace estimator
