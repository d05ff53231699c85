#include <gmock/gmock.h>

#include <filesystem>

#include "estimator/base/document.h"
#include "estimator/profile/rank_profile.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;

class RooflineCommand : public OnerankProgram {};

estimator::RankProfile program_profile() {
  constexpr int64_t kBytes = 1 << 30;
  estimator::RankProfile profile;
  profile.plan = estimator::Json::object();
  profile.device = {.gpu = "h100-sxm", .name = "NVIDIA H100 80GB HBM3", .total_bytes = 80 * kBytes};
  profile.phases = {{.name = "iteration_0.forward_backward", .peak = {kBytes, kBytes}}};
  profile.peak = {.allocated_bytes = kBytes, .reserved_bytes = kBytes};
  profile.program = estimator::ProgramRecord{.command = {"python", "train.py"}};
  return profile;
}

TEST_F(RooflineCommand, PrintsTablesAndExitsWithZeroAlsoWhenThePlanDoesNotFit) {
  environment_["FAKE_PEAK_BYTES"] = "999999999999";
  const ProgramResult result = run(small_plan({"roofline"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* title : {"what the step waits for", "operator", "module", "phase", "hotspot"}) {
    EXPECT_THAT(result.output, HasSubstr(title));
  }
}

TEST_F(RooflineCommand, OfAProgramIsRefusedWithWhatThereIs) {
  std::filesystem::create_directory(path("program"));
  write("program/rank-00000.json", estimator::document_text(program_profile()));
  const ProgramResult result = run({"roofline", "--profiles", path("program")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("a program's time is not known"));
  EXPECT_THAT(result.error, HasSubstr("rank 0 ran python train.py"));
  EXPECT_THAT(result.error, HasSubstr("`onerank estimate --profiles DIR` tells its memory"));
}

TEST_F(RooflineCommand, PrintsJson) {
  const ProgramResult result = run(small_plan({"roofline"}, {"--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const estimator::Json json = estimator::Json::parse(result.output);
  EXPECT_EQ(json["kind"], "roofline");
  EXPECT_EQ(json["gpu"], "h100-sxm");
}

}  // namespace
}  // namespace sim
