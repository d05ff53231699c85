// What the profile of a program says, against what torch says of itself in the program.

#include <algorithm>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

class ExecProfile : public ExecProgram {};

TEST_F(ExecProfile, HasThePeaksThatTorchItselfTells) {
  const ProgramResult result = run_program("plain.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto told = profile(0);
  EXPECT_EQ(told.peak.allocated_bytes, printed(result.output, "allocated"));
  EXPECT_EQ(told.peak.reserved_bytes, printed(result.output, "reserved"));
  EXPECT_EQ(told.program->optimizer_steps, 3);
  EXPECT_EQ(told.phases.front().name, "build_model");
  EXPECT_EQ(told.phases.back().name, "end");
  // Two fp32 layers of 512 x 2048, and their biases: weights, gradients, two moments.
  const int64_t parameters = 2 * 512 * 2048 + 2048 + 512;
  EXPECT_GE(told.peak.allocated_bytes, 4 * 4 * parameters);
}

TEST_F(ExecProfile, NamesKernelsAndProducts) {
  ASSERT_EQ(run_program("plain.py", {"--steps", "2"}).exit_code, 0);
  const auto program = *profile(0).program;
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

TEST_F(ExecProfile, OfAProgramThatIsEndedAfterKStepsHasKIterations) {
  const ProgramResult result = run_program("plain.py", {"--steps", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("step 1"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("step 2")));
  const auto told = profile(0);
  EXPECT_EQ(told.program->optimizer_steps, 2);
  EXPECT_TRUE(told.program->stopped_by_steps);
  EXPECT_EQ(told.phases.back().name, "iteration_1.optimizer_step");
}

TEST_F(ExecProfile, IsTheSameForTheSameProgram) {
  ASSERT_EQ(run_program("fsdp2.py", {"--world-size", "64", "--rank", "9"}).exit_code, 0);
  const auto first = profile(9);
  ASSERT_EQ(run_program("fsdp2.py", {"--world-size", "64", "--rank", "9"}).exit_code, 0);
  const auto second = profile(9);
  EXPECT_EQ(first.peak.allocated_bytes, second.peak.allocated_bytes);
  EXPECT_EQ(first.peak.reserved_bytes, second.peak.reserved_bytes);
}

TEST_F(ExecProfile, OfSeveralRanksMakesTheClustersMemory) {
  const ProgramResult result =
      run_program("pipeline.py", {"--world-size", "64", "--ranks", "0,16,63"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const ProgramResult estimate = run({"estimate", "--profiles", path("out")});
  EXPECT_EQ(estimate.exit_code, 0) << estimate.error;
  // Reserved, the context of an H100, and NCCL's buffers: a stage's neighbours are in other
  // machines, and share two pools.
  EXPECT_THAT(estimate.output, testing::StartsWith("fits: rank 0 needs "));
  EXPECT_THAT(estimate.output, HasSubstr("NCCL mesh_pp group of 4"));
  EXPECT_THAT(estimate.output, HasSubstr("over the network: 2 pools x 4 channels x 2 MiB"));
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

}  // namespace
}  // namespace sim
