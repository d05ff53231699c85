#include "sim/cli/report/timeline_text.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

using estimator::Activity;
using estimator::StageTimeline;
using estimator::TimelineEvent;
using estimator::Track;

TimelineEvent step(Activity activity, double begin, double end, int64_t micro_batch) {
  return {
      .activity = activity, .begin_seconds = begin, .end_seconds = end, .micro_batch = micro_batch};
}

TimelineEvent data(double begin, double end) {
  return {.track = Track::kData,
          .activity = Activity::kReduceGradients,
          .begin_seconds = begin,
          .end_seconds = end};
}

// 1F1B of two stages and micro-batches 8 and 9, F = 1 and B = 2, a reduction that begins beside the
// last backward, an optimizer: 10 seconds in 30 columns.
TEST(TimelineText, DrawsALineForEachStage) {
  constexpr auto F = Activity::kForward, B = Activity::kBackward;
  const estimator::StepTimeline timeline{
      .name = "two",
      .iteration_seconds = 10,
      .stages = {{.stage = 0,
                  .events = {step(F, 0, 1, 8),
                             step(F, 1, 2, 9),
                             step(B, 4, 6, 8),
                             step(B, 7, 9, 9),
                             step(Activity::kOptimizer, 9, 10, -1)}},
                 {.stage = 1,
                  .events = {step(F, 1, 2, 8),
                             step(B, 2, 4, 8),
                             step(F, 4, 5, 9),
                             step(B, 5, 7, 9),
                             step(Activity::kOptimizer, 9, 10, -1),
                             data(6, 8)}}}};
  EXPECT_EQ(timeline_text(timeline, 52),
            "\nThe step, 333.33 ms for each column\n"
            "  stage   0 |888999......iiiiii...jjjjjjOOO|  70 %\n"
            "  stage   1 |...888iiiiii999jjjjjj~~~...OOO|  70 %\n"
            "  0-9 forward and a-j backward of micro-batch ..0 to ..9, O optimizer, ~ data "
            "communication, . waiting\n");
}

TEST(TimelineText, OfNothingSaysSo) {
  EXPECT_EQ(timeline_text({.name = "", .stages = {{}}}, 80),
            "\nThe step takes no time: nothing was priced\n");
}

TEST(TimelineText, ShowsWhatAColumnIsMostOf) {
  const estimator::StepTimeline timeline{
      .name = "short",
      .iteration_seconds = 20,
      .stages = {{.stage = 0,
                  .events = {step(Activity::kForward, 0, 0.6, 1),
                             step(Activity::kBackward, 0.6, 1.4, 1),
                             step(Activity::kForward, 19.7, 20, 2)}}}};
  const std::string line = "|1" + std::string(19, '.') + "|";
  EXPECT_NE(timeline_text(timeline, 0).find(line), std::string::npos);
}

}  // namespace
}  // namespace sim
