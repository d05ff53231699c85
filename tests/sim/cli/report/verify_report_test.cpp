#include "sim/cli/report/verify_report.h"

#include <gmock/gmock.h>

namespace sim {
namespace {

TEST(VerifyReport, IsATableWithItsVerdictInEachFormat) {
  Verification verification;
  verification.ranks.push_back({.rank = 1,
                                .coordinate = {.data = 1},
                                .collectives = 1200,
                                .peak_allocated_bytes = 4096,
                                .tensors = 7,
                                .largest_error = 0.25});
  verification.ranks.back().differences.count = 2;
  const TitledTable table = verification_table(verification);
  const std::string verdict =
      "different: 1 real rank against the stub and the whole model: 2 differences\n";
  EXPECT_EQ(table.in({.format = TableFormat::kCsv}),
            "# " + verdict +
                "rank,tensor,data,stage,collectives,peak bytes,tensors,largest error / allowed "
                "error,differences\n"
                "1,0,1,0,1200,4096,7,25.0 %,2\n");
  EXPECT_THAT(table.in({.format = TableFormat::kMarkdown}),
              testing::StartsWith("### " + verdict + "\n| rank | tensor |"));
  EXPECT_THAT(verification_text(verification), testing::StartsWith(verdict + "\nrank  tensor"));
}

}  // namespace
}  // namespace sim
