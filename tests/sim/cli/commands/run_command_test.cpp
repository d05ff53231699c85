#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "estimator/profile/rank_profile.h"
#include "tests/paths.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RunCommand : public OnerankProgram {};

TEST_F(RunCommand, PrintsWhereItRanThePhasesAndThePeak) {
  environment_["WORLD_SIZE"] = "8";
  environment_["RANK"] = "3";
  const ProgramResult result = run(small_plan({"run"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output,
            "simulated world 8 (from WORLD_SIZE), rank 3 (from RANK); device cuda Fake GPU\n"
            "rank 3 (tensor 0, data 0, stage 0): 1,000 parameters (0.00 GiB), 3 of 4 micro-batches "
            "executed\n"
            "\n"
            "phase (MiB)                   before  after  delta  peak allocated  peak reserved     "
            "  time\n"
            "iteration_1.forward_backward    1.00   3.00  +2.00         1024.00        1024.00  "
            "500.00 ms\n"
            "\n"
            "peak: 1.00 GiB allocated, 1.00 GiB reserved, in iteration_1.forward_backward, module "
            "layers.0.mlp, operator aten::mm\n");
}

TEST_F(RunCommand, PrintsTheProfileAsJsonAndNothingElseOnStandardOutput) {
  const ProgramResult result = run(small_plan({"run"}, {"--json", "--rank", "2"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const estimator::RankProfile profile = estimator::read_rank_profile(result.output, "stdout");
  EXPECT_EQ(profile.rank, 2);
  EXPECT_EQ(profile.plan.json()["model"]["preset"], "llama3-8b");
  EXPECT_THAT(result.error, HasSubstr("simulated world 8 (from the plan), rank 2 (from --rank)"));
}

TEST_F(RunCommand, WritesItsTablesInEachFormat) {
  const auto in = [&](const std::string& format) {
    return run(small_plan({"run"}, {"--format", format}));
  };
  EXPECT_EQ(
      in("csv").output,
      "# Phases\n"
      "phase (MiB),before,after,delta,peak allocated,peak reserved,time\n"
      "iteration_1.forward_backward,1.00,3.00,+2.00,1024.00,1024.00,500.00 ms\n"
      "# peak: 1.00 GiB allocated, 1.00 GiB reserved, in iteration_1.forward_backward, module "
      "layers.0.mlp, operator aten::mm\n");
  EXPECT_THAT(in("md").output, StartsWith("### Phases\n\n| phase (MiB) | before |"));
  const ProgramResult unknown = in("xml");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error, HasSubstr("unknown format"));
}

TEST_F(RunCommand, WritesTheProfileToAFile) {
  const ProgramResult result = run(small_plan({"run"}, {"--output", path("profile.json")}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(estimator::read_rank_profile(read("profile.json"), "file").rank, 0);
}

TEST_F(RunCommand, FailsWhenStandardOutputIsFull) {
  const ProgramResult result = run({"list", "gpus"});
  EXPECT_EQ(result.exit_code, 0);
  const int status = std::system(
      (std::string(tests::kProgram) + " list gpus >/dev/full 2>" + path("error")).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(read("error"), StartsWith("error: cannot write to standard output\n"));
}

TEST_F(RunCommand, FailsWhenNobodyReadsStandardOutput) {
  const std::string command = "{ sleep 0.2; " + std::string(tests::kProgram) +
                              " list gpus; echo $? >" + path("code") + "; } 2>" + path("error") +
                              " | true";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read("code"), "3\n");
  EXPECT_THAT(read("error"), HasSubstr("Broken pipe"));
}

}  // namespace
}  // namespace sim
