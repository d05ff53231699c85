#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;

class RooflineCommand : public OnerankProgram {};

TEST_F(RooflineCommand, PrintsTablesAndExitsWithZeroAlsoWhenThePlanDoesNotFit) {
  environment_["FAKE_PEAK_BYTES"] = "999999999999";
  const ProgramResult result = run(small_plan({"roofline"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* title : {"what the step waits for", "operator", "module", "phase", "hotspot"}) {
    EXPECT_THAT(result.output, HasSubstr(title));
  }
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
