#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AllocatorsCommand : public OnerankProgram {
 protected:
  std::vector<std::string> settings_of(const std::vector<std::string>& flags) {
    const ProgramResult result = run(small_plan({"allocators", "--json"}, flags));
    EXPECT_EQ(result.exit_code, 0) << result.error;
    std::vector<std::string> settings;
    const estimator::Json document = estimator::parse_json(result.output, "stdout");
    for (const auto& row : document.at("settings")) {
      settings.push_back(row.at("setting"));
    }
    return settings;
  }
};

TEST_F(AllocatorsCommand, ComparesWithWhatThePlanSays) {
  EXPECT_THAT(
      settings_of({"--allocator", "max_split_size_mb:64", "--setting", "max_split_size_mb:128"}),
      ElementsAre("max_split_size_mb:64", "max_split_size_mb:128"));
}

TEST_F(AllocatorsCommand, TriesEachKindOfSettingAndNoneTwice) {
  EXPECT_THAT(settings_of({"--allocator", "expandable_segments:True"}),
              ElementsAre("expandable_segments:True",
                          "",
                          "max_split_size_mb:128",
                          "max_split_size_mb:512",
                          "roundup_power2_divisions:8",
                          HasSubstr("garbage_collection_threshold")));
}

TEST_F(AllocatorsCommand, MarksThePlansOwnSetting) {
  const ProgramResult result =
      run(small_plan({"allocators"}, {"--setting", "expandable_segments:True"}));
  EXPECT_THAT(result.output, HasSubstr("(PyTorch's defaults) *"));
  EXPECT_THAT(result.output, HasSubstr("\n  expandable_segments:True "));
}

TEST_F(AllocatorsCommand, WritesItsTableInEachFormat) {
  const auto written = [&](const char* format) {
    return run(small_plan({"allocators", "--format", format},
                          {"--setting", "expandable_segments:True"}))
        .output;
  };
  EXPECT_THAT(written("md"), HasSubstr("| setting | rank | allocated |"));
  EXPECT_THAT(written("csv"), HasSubstr("\nsetting,rank,allocated,"));
  EXPECT_THAT(written("csv"), HasSubstr("\nexpandable_segments:True,0,"));
  EXPECT_TRUE(estimator::parse_json(written("json"), "stdout").contains("settings"));
}

}  // namespace
}  // namespace sim
