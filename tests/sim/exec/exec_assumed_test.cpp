// Values that no kernel computes and the user gives: they reach the program, and are listed.

#include <fmt/format.h>

#include <map>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

class ExecAssumed : public ExecProgram {
 protected:
  void SetUp() override {
    ExecProgram::SetUp();
    if (!has_package("numpy")) GTEST_SKIP() << "no numpy: scripts/test installs it";
  }
  ProgramResult run_mixture(const std::string& rank, const std::vector<std::string>& policy) {
    std::vector<std::string> flags = {"--world-size", "64", "--rank", rank};
    flags.insert(flags.end(), policy.begin(), policy.end());
    return run_program("mixture.py", flags);
  }
};

TEST_F(ExecAssumed, ARouterWithoutAPolicyIsRefused) {
  const ProgramResult result = run_mixture("0", {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("counts that only kernels would know"));
  EXPECT_THAT(result.error, HasSubstr("--expert-balance"));
}

TEST_F(ExecAssumed, ABalancedRouterGivesEachExpertTheMean) {
  // 256 tokens with two experts each, on 64 experts: 8 from each of 64 ranks.
  for (const char* rank : {"0", "27"}) {
    const ProgramResult result = run_mixture(rank, {"--expert-balance", "balanced", "--verbose"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("sent 512 received 512"));
    EXPECT_THAT(result.output, HasSubstr("512 tokens on 64 experts"));
  }
}

TEST_F(ExecAssumed, AnImbalancedRouterFillsTheFirstExpert) {
  // The mean is 8: the first expert gets 32, from each rank.
  const ProgramResult first = run_mixture("0", {"--expert-balance", "imbalance:4"});
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_THAT(first.output, HasSubstr("sent 512 received 2048"));
  // 480 are left for 63 others: 7 each, and one more for the first 39 of them.
  const ProgramResult last = run_mixture("63", {"--expert-balance", "imbalance:4"});
  ASSERT_EQ(last.exit_code, 0) << last.error;
  EXPECT_THAT(last.output, HasSubstr("sent 512 received 448"));
}

TEST_F(ExecAssumed, WhatDispatchersMakeOfTheChoicesIsFollowed) {
  // 256 tokens with two experts each, on 16 experts: 32 from each of 8 ranks. In the other case the
  // first expert gets 4 times that, and 384 are left for 15 others: 25 each, one more for the
  // first 9.
  const struct {
    const char* rank;
    const char* policy;
    const char* received;
  } kCases[] = {{"3", "balanced", "tokens 512 of my experts [256, 256]"},
                {"0", "imbalance:4", "tokens 1232 of my experts [1024, 208]"},
                {"7", "imbalance:4", "tokens 400 of my experts [200, 200]"}};
  for (const auto& [rank, policy, received] : kCases) {
    const ProgramResult result = run_program(
        "dispatchers.py", {"--world-size", "8", "--rank", rank, "--expert-balance", policy});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr(std::string("all_to_all ") + received));
    EXPECT_THAT(result.output, HasSubstr(std::string("gathered ") + received));
  }
}

/// Ways of programs/counted.py that let kernels count.
const std::vector<std::string> kCountedByKernels = {"histc",
                                                    "histc_out",
                                                    "bincount",
                                                    "scatter",
                                                    "index_add",
                                                    "index_put",
                                                    "mask",
                                                    "one_hot",
                                                    "unique"};

TEST_F(ExecAssumed, CountsAreNotKnownHoweverTheyAreCounted) {
  const ProgramResult result =
      run_program("counted.py", {"--accept-invented-counts"}, kCountedByKernels);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::RankProfile told = profile(0);
  std::map<std::string, int64_t> reads;
  for (const estimator::InventedRead& read : told.program->invented_reads) {
    if (read.bytes == 8 * 8 || read.reader == "aten::_unique2") reads[read.reader] += read.count;
  }
  EXPECT_EQ(reads, (std::map<std::string, int64_t>{{"aten::to", 8}, {"aten::_unique2", 1}}));
}

TEST_F(ExecAssumed, ARefusalNamesOperatorTensorAndLine) {
  const ProgramResult result = run_program("counted.py", {}, {"nonzero", "zeros"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("counts that only kernels would know"));
  EXPECT_THAT(result.error, HasSubstr("--expert-balance"));
  EXPECT_THAT(result.error,
              testing::ContainsRegex("\\(aten::nonzero of a Bool tensor \\[64, 8\\], "
                                     "counted.py:[0-9]+ in <lambda>, build_model; "));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("zeros"))) << "it ends there";
}

TEST_F(ExecAssumed, ARefusalDoesNotAskForThePolicyThatWasGiven) {
  const ProgramResult result =
      run_program("counted.py", {"--expert-balance", "balanced"}, {"nonzero"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("--accept-invented-counts"));
  EXPECT_THAT(result.error, testing::Not(HasSubstr("--expert-balance")));
}

TEST_F(ExecAssumed, PrintingWhatNobodyKnowsIsNotRefused) {
  const ProgramResult result = run_program("counted.py", {}, {"printed"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("printed tensor([0., 0., 0.], device='cuda:0')"));
}

TEST_F(ExecAssumed, CountsFollowThePolicyHoweverTheyAreCounted) {
  // 64 tokens with two experts each, on 8 experts.
  const ProgramResult result =
      run_program("counted.py", {"--expert-balance", "balanced"}, kCountedByKernels);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const std::string& way : kCountedByKernels) {
    EXPECT_THAT(result.output, HasSubstr(way + " [16, 16, 16, 16, 16, 16, 16, 16]\n"));
  }
}

TEST_F(ExecAssumed, AFusedRouterChoosesAsThePolicySays) {
  // 64 tokens with two of 8 experts each; in the other case the first expert gets 3 times the mean,
  // and 80 are left for 7 others: 11 each, one more for the first 3.
  const struct {
    const char* policy;
    const char* counts;
  } kCases[] = {{"balanced", "[16, 16, 16, 16, 16, 16, 16, 16]"},
                {"imbalance:3", "[48, 12, 12, 12, 11, 11, 11, 11]"}};
  for (const auto& [policy, counts] : kCases) {
    const ProgramResult result =
        run_program("fused_router.py", {"--expert-balance", policy, "--verbose"});
    ASSERT_EQ(result.exit_code, 3) << "it does not train: " << result.error;
    for (const char* router : {"chosen", "for_loss"}) {
      EXPECT_THAT(result.output, HasSubstr(fmt::format("{} {} of a token {{2}}", router, counts)));
    }
    EXPECT_THAT(result.output, HasSubstr("fused_score_for_moe_aux_loss_fwd"));
  }
}

TEST_F(ExecAssumed, AFusedRouterWithoutAPolicyIsRefused) {
  const ProgramResult result = run_program("fused_router.py", {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("counts that only kernels would know"));
  EXPECT_THAT(result.error, HasSubstr("--expert-balance"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("chosen")));
}

TEST_F(ExecAssumed, WhatTheProgramWroteItselfIsNotRefused) {
  const ProgramResult result = run_program("counted.py",
                                           {},
                                           {"zeros",
                                            "full",
                                            "zeros_like",
                                            "new_zeros",
                                            "zeroed",
                                            "filled",
                                            "clone",
                                            "copied",
                                            "streamed",
                                            "joined"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const char* way : {"zeros", "zeros_like", "new_zeros", "zeroed", "clone"}) {
    EXPECT_THAT(result.output, HasSubstr(std::string(way) + " [0, 0, 0, 0, 0, 0, 0, 0]\n"));
  }
  for (const char* way : {"full", "filled"}) {
    EXPECT_THAT(result.output, HasSubstr(std::string(way) + " [3, 3, 3, 3, 3, 3, 3, 3]\n"));
  }
  for (const char* way : {"copied", "streamed"}) {
    EXPECT_THAT(result.output, HasSubstr(std::string(way) + " [0, 1, 2, 3, 4, 5, 6, 7]\n"));
  }
  EXPECT_THAT(result.output, HasSubstr("joined [0, 1, 2, 3, 0, 1, 2, 3]\n"));
  EXPECT_TRUE(profile(0).program->invented_reads.empty());
}

TEST_F(ExecAssumed, WhatTheHostSentIsFollowedThroughOperators) {
  const ProgramResult result = run_program("followed.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  std::istringstream lines(result.output);
  int64_t ways = 0;
  for (std::string line; std::getline(lines, line) && !line.starts_with("taken"); ++ways) {
    EXPECT_THAT(line, testing::EndsWith(" is right"));
  }
  EXPECT_EQ(ways, 42);
  EXPECT_THAT(result.output, HasSubstr("taken [5, 3] [2, 4, 3]"));
  EXPECT_TRUE(profile(0).program->invented_reads.empty());
}

TEST_F(ExecAssumed, IntegersThatTheDeviceDrawsAreTheOnesThatAGpuDraws) {
  const ProgramResult result = run_program("drawn.py", {});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(profile(0).program->invented_reads.empty());
}

TEST_F(ExecAssumed, WhatExtensionsComputeOfKnownValuesIsKnown) {
  const ProgramResult result = run_program("extension.py", {}, {"sums", "rows", "increments"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("sums [2, 2, 5] [2, 0, 3]\n"));
  EXPECT_THAT(result.output, HasSubstr("rows [3, 0, 2] [0, 0, 2, 2, 2] [2, 0, 3]\n"));
  EXPECT_THAT(result.output, HasSubstr("increments [3, 1, 4]\n"));
  EXPECT_TRUE(profile(0).program->invented_reads.empty());
}

TEST_F(ExecAssumed, SizesThatOnlyKernelsOfAnExtensionWouldKnowAreRefused) {
  const struct {
    std::vector<std::string> arguments;
    const char* reader;
  } kCases[] = {{{"rows", "unknown"}, "(extension::rows of a Long tensor"},
                {{"draws"}, "(aten::to of a Long tensor [3], extension.py:"},
                {{"two_sizes"}, "(extension::two_sizes of "}};
  for (const auto& [arguments, reader] : kCases) {
    const ProgramResult result = run_program("extension.py", {}, arguments);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.error, HasSubstr("counts that only kernels would know"));
    EXPECT_THAT(result.error, HasSubstr(reader));
    EXPECT_THAT(result.output, testing::Not(HasSubstr(arguments.front() + " [")))
        << "it ends there";
  }
}

/// Of a kernel that is no operator's and is given memory: what nobody knows after it, and what is
/// known as before.
struct OwnKernel {
  const char* launch;
  std::vector<std::string> unknown;
  std::vector<std::string> known;

  friend void PrintTo(const OwnKernel& kernel, std::ostream* out) { *out << kernel.launch; }
};

class ExecOwnKernels : public ExecProgram, public testing::WithParamInterface<OwnKernel> {};

TEST_P(ExecOwnKernels, MakeUnknownWhatTheyCanHaveWrittenAndNothingElse) {
  if (!has_package("torch/bin/ptxas")) GTEST_SKIP() << "this torch brings no ptxas";
  const std::map<std::string, std::string> values = {{"another", "[0, 0, 0, 0, 0, 0, 0, 0]"},
                                                     {"computed", "[1, 2, 3, 4, 5, 6, 7, 8]"},
                                                     {"sent", "[0, 1, 2, 3, 4, 5, 6, 7]"}};
  const OwnKernel& kernel = GetParam();
  std::vector<std::string> arguments = {kernel.launch};
  arguments.insert(arguments.end(), kernel.known.begin(), kernel.known.end());
  arguments.insert(arguments.end(), kernel.unknown.begin(), kernel.unknown.end());
  const ProgramResult result =
      run_program("own_kernels.py", {"--accept-invented-counts"}, arguments);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const std::string& memory : kernel.known) {
    EXPECT_THAT(result.output, HasSubstr(memory + " " + values.at(memory) + "\n"));
  }
  EXPECT_THAT(profile(0).program->invented_reads,
              testing::ElementsAre(
                  AllOf(Field(&estimator::InventedRead::bytes, 8 * 8),
                        Field(&estimator::InventedRead::count, std::ssize(kernel.unknown)))));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    ExecOwnKernels,
    testing::Values(
        // "beside" is in the same block.
        OwnKernel{"cubin", {"counts", "beside"}, {"another", "computed", "sent"}},
        OwnKernel{"library", {"counts", "beside"}, {"another", "computed", "sent"}},
        OwnKernel{"unreadable", {"counts", "computed"}, {"sent"}},
        OwnKernel{"unknown", {"counts"}, {"sent"}}),
    [](const auto& instance) { return std::string(instance.param.launch); });

TEST_F(ExecAssumed, LossNormAndOverflowReachTheProgram) {
  const ProgramResult zeros = run_program("assumed.py", {});
  ASSERT_EQ(zeros.exit_code, 0) << zeros.error;
  EXPECT_THAT(zeros.output, HasSubstr("loss 0.0 norm 0.0"));
  const ProgramResult given = run_program(
      "assumed.py", {"--assume", "loss=5", "--assume", "grad-norm=1.5", "--assume", "found-inf=0"});
  ASSERT_EQ(given.exit_code, 0) << given.error;
  EXPECT_THAT(given.output, HasSubstr("loss 2.5 norm 1.5 scale 65536.0"));
  EXPECT_THAT(profile(0).program->assumed,
              Contains(Field(&estimator::AssumedRecord::name, "grad-norm")));
  // An overflow skips the step and halves the scale, each time.
  const ProgramResult overflow = run_program("assumed.py", {"--assume", "found-inf=1"});
  ASSERT_EQ(overflow.exit_code, 0) << overflow.error;
  EXPECT_THAT(overflow.output, HasSubstr("scale 16384.0"));
}

TEST_F(ExecAssumed, WhatCannotBeAssumedIsTold) {
  EXPECT_THAT(run({"exec", "--assume", "lost=1", "--", "true"}).error,
              HasSubstr("with one of loss, grad-norm, found-inf"));
  EXPECT_THAT(run({"exec", "--expert-balance", "imbalance:0.5", "--", "true"}).error,
              HasSubstr("use balanced, or imbalance:F"));
}

// What a program decides by is read as zero, as ever.
TEST_F(ExecAssumed, WhatTheProgramChecksIsSo) {
  const ProgramResult result = run_program("checks.py", {"--verbose"}, {"asks"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("some are small"));
  EXPECT_THAT(result.output, HasSubstr("that what the program checks is so (checks "));
  EXPECT_THAT(result.output, HasSubstr("true, checks.py:11 in <module>  aten::is_nonzero"));
  EXPECT_THAT(result.output, HasSubstr("true, checks.py:14 in <module>  aten::item"));
}

TEST_F(ExecAssumed, WhatAStepIsSkippedWithoutIsFinite) {
  const ProgramResult result =
      run_program("skips_infinite.py", {"--world-size", "4", "--verbose"}, {"asks"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, testing::Not(HasSubstr("skipped")));
  EXPECT_THAT(result.output, HasSubstr("finite\nfinite\n"));
  EXPECT_THAT(result.output, HasSubstr("asked two things")) << "what else is asked is not known";
  EXPECT_THAT(result.output,
              HasSubstr("true, skips_infinite.py:17 in <module>  aten::_local_scalar_dense"));
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
}

}  // namespace
}  // namespace sim
