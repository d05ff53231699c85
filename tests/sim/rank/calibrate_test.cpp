// The real rank process measures; on a CPU, since tests have no GPU.

#include <gtest/gtest.h>

#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/compute/calibration.h"
#include "sim/cli/ranks/rank_process.h"

namespace sim {
namespace {

using estimator::DeviceKind;

TEST(Calibrate, MeasuresEveryKindOfKernel) {
  const estimator::Calibration measured = run_calibration(DeviceKind::kCpu, current_environment());
  EXPECT_GE(measured.matmul.size(), 2u);
  EXPECT_EQ(measured.attention.size(), 2u);
  EXPECT_GE(measured.streams.size(), 2u);
  EXPECT_GE(measured.optimizer.size(), 1u);
  EXPECT_EQ(measured.device.kind, DeviceKind::kCpu);
  EXPECT_FALSE(measured.tool.torch.empty());
  EXPECT_EQ(measured.date.size(), 10u);  // 2026-11-21
  EXPECT_NE(measured.note.find("estimates do not use it"), std::string::npos);
}

TEST(Calibrate, EndsWithWhatTheMachineLacksWhereThereIsNoGpu) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  try {
    run_calibration(DeviceKind::kCuda, current_environment());
    FAIL() << "it measured a GPU that is not there";
  } catch (const estimator::UserError& error) {
    EXPECT_EQ(error.exit_code(), estimator::ExitCode::kMachineLacks);
  }
}

}  // namespace
}  // namespace sim
