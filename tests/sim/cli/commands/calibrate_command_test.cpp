#include <gmock/gmock.h>

#include <filesystem>

#include "estimator/base/document.h"
#include "estimator/compute/calibration.h"
#include "sim/cli/process/environment.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;

class CalibrateCommand : public OnerankProgram {};

bool has_driver() {
  return std::filesystem::exists("/dev/nvidiactl") ||
         std::filesystem::exists("/proc/driver/nvidia");
}

TEST_F(CalibrateCommand, WritesWhatTheRankProcessMeasured) {
  const ProgramResult result = run({"calibrate", "--device", "cpu", "--output", path("cpu.json")});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("product bf16 1000 x 1000 x 1000"));
  EXPECT_THAT(result.output, HasSubstr("200.0 TFLOP/s"));  // 2e9 FLOPs in 10 us
  EXPECT_EQ(estimator::read_calibration(read("cpu.json"), "file").matmul.size(), 1u);
}

TEST_F(CalibrateCommand, RefusesAMachineWithoutAGpu) {
  environment_[kDriverFileVariable] = path("none");
  if (has_driver()) GTEST_SKIP() << "this machine has a driver of NVIDIA's";
  const ProgramResult result = run({"calibrate", "--output", path("gpu.json")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("there is no GPU to measure"));
  EXPECT_FALSE(std::filesystem::exists(path("gpu.json")));
}

TEST_F(CalibrateCommand, RefusesAVirtualGpuWhichHasNoSpeed) {
  const ProgramResult result = run({"calibrate", "--device", "virtual"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("a virtual GPU has no speed"));
}

TEST_F(CalibrateCommand, TellsWhatTheRankProcessLacks) {
  environment_["FAKE_MODE"] = "lacks-gpu";
  const ProgramResult result = run({"calibrate", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("no GPU"));
}

class CalibrationFlag : public OnerankProgram {
 protected:
  std::string file_of(estimator::DeviceKind device, const std::string& name) {
    estimator::Calibration calibration;
    calibration.device.kind = device;
    calibration.device.name = name;
    calibration.driver = "580.1";
    calibration.date = "2026-11-21";
    calibration.matmul = {{.m = 8192, .n = 8192, .k = 8192, .seconds = 2e-3}};
    calibration.launch = {.kernel_seconds = 2e-6, .host_seconds = 5e-6};
    return write("calibration.json", estimator::document_text(calibration));
  }
  ProgramResult estimate(estimator::DeviceKind device, const std::string& name) {
    return run(small_plan({"estimate", "--sources"}, {"--calibration", file_of(device, name)}));
  }
};

TEST_F(CalibrationFlag, MakesRatesMeasuredOnes) {
  const ProgramResult result = estimate(estimator::DeviceKind::kCuda, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("550 TFLOP/s  measured"));  // 2 x 8192^3 in 2 ms
  EXPECT_THAT(result.output, HasSubstr("driver 580.1, 2026-11-21"));
}

TEST_F(CalibrationFlag, HasAKeyOfThePlan) {
  const std::string file = file_of(estimator::DeviceKind::kCuda, "NVIDIA H100 80GB HBM3");
  const ProgramResult result =
      run(small_plan({"estimate", "--sources"}, {"--set", "time.calibration=" + file}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("550 TFLOP/s  measured"));
}

TEST_F(CalibrationFlag, StandsInAPlanThatIsWritten) {
  const std::string file = file_of(estimator::DeviceKind::kCuda, "NVIDIA H100 80GB HBM3");
  const std::string plan = path("plan.json");
  run(small_plan({"estimate"}, {"--calibration", file, "--write-plan", plan}));
  const ProgramResult result = run({"estimate", plan, "--sources", "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("550 TFLOP/s  measured"));
}

TEST_F(CalibrationFlag, IsRefusedForAnotherGpuAndForNone) {
  const ProgramResult other = estimate(estimator::DeviceKind::kCuda, "NVIDIA B200");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, HasSubstr("another GPU than the plan's"));
  const ProgramResult none = estimate(estimator::DeviceKind::kCpu, "CPU");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, HasSubstr("the calibration was not measured on a real GPU"));
}

}  // namespace
}  // namespace sim
