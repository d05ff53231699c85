#include "sim/cli/report/memory_picture.h"

#include <gmock/gmock.h>

#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::kGiB;
using testing::HasSubstr;

TEST(MemoryPicture, OfNoPointsIsNothing) { EXPECT_EQ(memory_picture({}), ""); }

// 1, 4 and 8 of 8 GiB are one, four and eight eighths; a column of two points shows the larger.
TEST(MemoryPicture, HasAColumnsLargestInEighthsAndALetterWhereAPhaseBegins) {
  const std::string picture = memory_picture({{"build_model", 1 * kGiB},
                                              {"build_model", 0},
                                              {"iteration_0", 4 * kGiB},
                                              {"iteration_0", 2 * kGiB},
                                              {"iteration_1", 8 * kGiB},
                                              {"iteration_1", 0}},
                                             3);
  EXPECT_THAT(picture, HasSubstr("8.00 GiB at the top\n  ▁▄█\n  abc\n"));
  EXPECT_THAT(picture, HasSubstr("  a build_model  b iteration_0  c iteration_1\n"));
}

}  // namespace
}  // namespace sim
