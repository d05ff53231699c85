// What a program finds on the virtual machine beside the devices: NVIDIA's management library, a
// way to meet, attention, Triton.

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

class ExecMachine : public ExecProgram {};

TEST_F(ExecMachine, TellsOfItsDevicesThroughNvml) {
  if (!has_package("pynvml.py")) GTEST_SKIP() << "no pynvml: scripts/test installs it";
  const ProgramResult result = run_program("management.py", {"--gpus-per-node", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("name NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(result.output, HasSubstr("devices 4 4"));
  EXPECT_EQ(printed(result.output, "total"), profile(0).device.total_bytes);
  EXPECT_EQ(printed(result.output, "used"), (int64_t{1} << 30) + profile(0).program->outside_bytes);
}

// The context of an H100, and two cuBLAS workspaces: the estimator's terms, which the verdict has.
TEST_F(ExecMachine, HasTheContextInItsMemoryFromTheStart) {
  const ProgramResult result = run_program("free_memory.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const int64_t outside_bytes = profile(0).program->outside_bytes;
  EXPECT_GT(outside_bytes, int64_t{512} << 20);
  EXPECT_EQ(printed(result.output, "total") - printed(result.output, "free"), outside_bytes);
}

TEST_F(ExecMachine, LetsRanksMeetByAFile) {
  for (const char* rank : {"0", "27"}) {
    const ProgramResult result =
        run_program("file_store.py", {"--world-size", "64", "--rank", rank});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("met"));
  }
}

TEST_F(ExecMachine, NeverTakesCudnnsAttention) {
  const ProgramResult result = run_program("attention.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(profile(0).program->attention,
              ElementsAre("aten::_scaled_dot_product_flash_attention",
                          "aten::_scaled_dot_product_flash_attention_backward"));
}

TEST_F(ExecMachine, RunsPyTorchsOwnKernelsWhereCudnnsWouldRunAndSaysSoOnce) {
  const ProgramResult result = run_program("convolutions.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("enabled False sequence [4, 225, 16]"));
  const std::string note = "onerank: note: the virtual GPU has no cuDNN";
  const size_t first = result.error.find(note);
  ASSERT_NE(first, std::string::npos) << result.error;
  EXPECT_EQ(result.error.find(note, first + 1), std::string::npos);
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
}

TEST_F(ExecMachine, CountsTheLaunchesOfTritonKernels) {
  if (!has_package("triton")) GTEST_SKIP() << "no triton: scripts/test does not install it";
  const ProgramResult result = run_program("triton_kernel.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto kernels = profile(0).program->kernels;
  EXPECT_THAT(kernels,
              Contains(testing::AllOf(Field(&estimator::KernelRecord::name, "double"),
                                      Field(&estimator::KernelRecord::launches, 3))));
  EXPECT_THAT(kernels,
              Contains(Field(&estimator::KernelRecord::name, HasSubstr("triton_poi_fused"))));
  // Some hundreds of launches for each of two configurations.
  EXPECT_THAT(
      kernels,
      Contains(testing::AllOf(Field(&estimator::KernelRecord::name, "tuned"),
                              Field(&estimator::KernelRecord::launches, testing::Lt(2000)))));
}

}  // namespace
}  // namespace sim
