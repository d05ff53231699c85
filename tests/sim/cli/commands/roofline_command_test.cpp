#include <gmock/gmock.h>

#include <filesystem>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/profile/rank_profile.h"
#include "tests/estimator/cluster/small_program.h"
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

TEST_F(RooflineCommand, IsWrittenForOthers) {
  EXPECT_THAT(run(small_plan({"roofline"}, {"--format", "md"})).output,
              HasSubstr("| what the step waits for | time |"));
  EXPECT_THAT(run(small_plan({"roofline"}, {"--format", "csv"})).output,
              HasSubstr("\nwhat the step waits for,time,"));
}

TEST_F(RooflineCommand, OfAProgramWithoutATraceIsRefused) {
  std::filesystem::create_directory(path("program"));
  write("program/rank-00000.json", estimator::document_text(program_profile()));
  const ProgramResult result = run({"roofline", "--profiles", path("program")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("the program has no step time"));
  EXPECT_THAT(result.error, HasSubstr("rank 0 has no trace"));
}

TEST_F(RooflineCommand, OfAProgramHasTheTablesOfAPlan) {
  std::filesystem::create_directory(path("program"));
  write("program/rank-00000.json", estimator::document_text(estimator::small_program()));
  const ProgramResult result = run({"roofline", "--profiles", path("program")});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* title : {"what the step waits for", "operator", "module", "phase", "hotspot"}) {
    EXPECT_THAT(result.output, HasSubstr(title));
  }
  const ProgramResult json = run({"roofline", "--profiles", path("program"), "--json"});
  EXPECT_EQ(estimator::Json::parse(json.output)["command"][1], "train.py");
  const ProgramResult refused =
      run({"roofline", "--profiles", path("program"), "--train-iters", "10"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("--train-iters with the profiles of a program"));
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
