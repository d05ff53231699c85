#include "sim/cli/report/memory_picture.h"

#include <gmock/gmock.h>

#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::kGiB;
using testing::HasSubstr;

TEST(MemoryPicture, OfNoPointsIsNothing) { EXPECT_EQ(memory_picture({}, 80), ""); }

/// Twenty columns of two points each, in three phases whose names begin with `prefix`.
std::vector<MemoryPoint> three_phases(const std::string& prefix) {
  std::vector<MemoryPoint> points;
  for (int column = 0; column < 20; ++column) {
    const int phase = column / 7;
    const int64_t gib = phase == 0 ? 1 : 4 * phase;
    points.push_back({prefix + std::to_string(phase), gib * kGiB});
    points.push_back({prefix + std::to_string(phase), 0});
  }
  return points;
}

// 1, 4 and 8 of 8 GiB are one, four and eight eighths; a column of two points shows the larger.
TEST(MemoryPicture, HasAColumnsLargestInEighthsAndALetterWhereAPhaseBegins) {
  const std::string picture = memory_picture(three_phases("phase_"), 22);
  EXPECT_THAT(picture,
              HasSubstr("8.00 GiB at the top\n  ▁▁▁▁▁▁▁▄▄▄▄▄▄▄██████\n  a      b      c     \n"));
  EXPECT_THAT(picture, HasSubstr("  a phase_0  b phase_1\n  c phase_2\n"));
}

TEST(MemoryPicture, WrapsWhatItsLettersMean) {
  const std::string picture = memory_picture(three_phases("iteration_1.forward_backward_"), 80);
  EXPECT_THAT(picture,
              HasSubstr("  a iteration_1.forward_backward_0  b iteration_1.forward_backward_1\n"
                        "  c iteration_1.forward_backward_2\n"));
}

TEST(MemoryPicture, MarksAColumnInWhichSeveralPhasesBegin) {
  std::vector<MemoryPoint> points;
  for (int i = 0; i < 100; ++i) points.push_back({i < 50 ? "a" : i < 52 ? "b" : "c", kGiB});
  EXPECT_THAT(memory_picture(points, 22), HasSubstr("\n  a         *         \n"));
}

}  // namespace
}  // namespace sim
