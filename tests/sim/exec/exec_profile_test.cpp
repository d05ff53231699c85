// What the profile of a program says, against what torch says of itself in the program.

#include <algorithm>

#include "estimator/profile/peak_snapshot.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ExecProfile : public ExecProgram {};

TEST_F(ExecProfile, OfAProgramThatIsEndedAfterKStepsHasKIterationsWithKernelsAndProducts) {
  const ProgramResult result =
      run_program("plain.py", {"--steps", "2", "--peak-snapshot", path("peak.jsonl")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("step 1"));
  EXPECT_THAT(result.output, Not(HasSubstr("step 2")));
  const auto told = profile(0);
  const auto& program = *told.program;
  EXPECT_EQ(program.optimizer_steps, 2);
  EXPECT_TRUE(program.stopped_by_steps);
  EXPECT_EQ(told.phases.back().name, "iteration_1.optimizer_step");
  EXPECT_EQ(estimator::read_peak_snapshot(read("peak.jsonl"), "peak.jsonl").header.peak.phase,
            "iteration_1.optimizer_step");
  EXPECT_THAT(program.kernels,
              Contains(Field(&estimator::KernelRecord::name, HasSubstr("GeluCUDAKernel"))));
  // The first layer forward, column-major: 2048 x 512 weights by 32 rows; two forwards and the one
  // in which the program was ended.
  const auto forward =
      std::find_if(program.gemms.begin(), program.gemms.end(), [](const estimator::GemmRecord& g) {
        return g.m == 2048 && g.n == 32 && g.k == 512;
      });
  ASSERT_NE(forward, program.gemms.end());
}

TEST_F(ExecProfile, OfAProgramWhoseVariablesHideNamesOfPythonHasItsPhasesAndItsModules) {
  const ProgramResult result = run_program("hides_names.py", {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
  EXPECT_THAT(profile(0).modules, Not(IsEmpty()));
}

TEST_F(ExecProfile, ListsWhatWasReadAlthoughNobodyComputedIt) {
  if (!has_package("numpy")) GTEST_SKIP() << "no numpy: scripts/test installs it";
  ASSERT_EQ(run_program("small_values.py", {"--world-size", "16", "--rank", "3"}).exit_code, 0);
  const auto reads = profile(3).program->invented_reads;
  // Of all that it reads, only what random numbers made: a float, and eight bytes.
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].bytes, 4);
  EXPECT_EQ(reads[0].count, 1);
  EXPECT_EQ(reads[1].bytes, 8);
  EXPECT_EQ(reads[1].count, 1);
}

// As training programs do that print a sample now and then.
TEST_F(ExecProfile, OfAProgramThatSamplesRecordsAnIterationWithoutThat) {
  const std::pair<const char*, int64_t> kSampledAndRecorded[] = {{"9", 1}, {"0", 2}, {"1", 1}};
  for (const auto& [sampled, recorded] : kSampledAndRecorded) {
    const ProgramResult result = run_program("samples.py", {"--steps", "3"}, {sampled});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const auto told = profile(0).program;
    EXPECT_EQ(told->recorded_iteration, recorded) << "after step " << sampled;
    EXPECT_THAT(told->recorded_with, IsEmpty());
  }
}

TEST_F(ExecProfile, OfAProgramThatSamplesInItsLastIterationSaysSo) {
  const ProgramResult result = run_program("samples.py", {"--steps", "2"}, {"0"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).program->recorded_iteration, 1);
  EXPECT_THAT(result.output, HasSubstr("has many more products"));
}

TEST_F(ExecProfile, OfAProgramThatSleepsOrLoadsDataSaysThatTheStepLeavesItOut) {
  const ProgramResult result = run_program("sleeps.py", {"--steps", "2"}, {"0.02"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::PhaseRecord iteration = profile(0).phases.at(4);
  ASSERT_EQ(iteration.name, "iteration_1.forward_backward");
  EXPECT_GE(iteration.waits.value().sleeping_seconds, 0.02);
  EXPECT_GE(iteration.waits.value().loading_seconds,
            4 * 0.02);  // the sleep of each sample is the loader's
  EXPECT_THAT(result.output, HasSubstr("the program slept for "));
  EXPECT_THAT(run_program("sleeps.py", {"--steps", "2"}).output, Not(HasSubstr("slept")));
}

TEST_F(ExecProfile, OfOptimizersThatStepInTurnIsOfAUsualIteration) {
  ASSERT_EQ(run_program("turns.py", {"--steps", "2"}).exit_code, 0);
  EXPECT_EQ(profile(0).program->recorded_iteration, 1);
  EXPECT_THAT(profile(0).program->recorded_with, IsEmpty());
}

}  // namespace
}  // namespace sim
