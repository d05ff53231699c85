// The data of the pictures: memory over time, and the step.
#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "sim/cli/page/rank_detail.h"
#include "sim/cli/page/step_picture.h"

namespace sim {
namespace {

using estimator::Activity;
using estimator::Json;
using estimator::TimelineEvent;
using estimator::Track;

TEST(HistoryPicture, KeepsThePeakOfALongRunAndWhereItsPhasesBegin) {
  constexpr int kPoints = 10'000, kPeakAt = 6'789;
  constexpr int64_t kPeakKib = 5'000;
  std::vector<MemoryPoint> points(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    MemoryPoint& point = points[static_cast<std::size_t>(i)];
    point.phase = i < kPoints / 2 ? "first" : "second";
    const int64_t kib = i == kPeakAt ? kPeakKib : 100;
    point.categories[estimator::MemoryCategory::kActivation] = kib << 10;
    point.allocated_bytes = kib << 10;
    point.reserved_bytes = kPeakKib << 10;
  }
  const Json json = Json::parse(history_json(points, 80));
  EXPECT_EQ(json["limit_bytes"], 80);
  ASSERT_EQ(json["phases"].size(), 2u);
  const std::size_t count = json["points"].size();
  EXPECT_LE(count, 1000u);
  EXPECT_EQ(json["phases"][1]["begin"], count / 2);
  int64_t largest = 0;
  for (const Json& point : json["points"]) {
    EXPECT_EQ(point.back(), kPeakKib);
    for (std::size_t c = 0; c + 1 < point.size(); ++c) {
      largest = std::max(largest, point[c].get<int64_t>());
    }
  }
  EXPECT_EQ(largest, kPeakKib);
}

TEST(HistoryPicture, OfNoPointsIsEmpty) {
  EXPECT_TRUE(Json::parse(history_json({}, 0))["points"].empty());
}

TimelineEvent event(Track track, Activity activity, double begin, double end, int64_t micro_batch) {
  return {.track = track,
          .activity = activity,
          .begin_seconds = begin,
          .end_seconds = end,
          .micro_batch = micro_batch};
}

// Ten seconds: a forward from 1 to 2, a backward from 4 to 7, a reduction from 6 to 9 that shows
// after the backward alone. Sends are not drawn.
TEST(StepPicture, HasGapsAndLengthsInMillionthsAndCommunicationWhereNothingElseRuns) {
  const estimator::StepTimeline timeline{
      .iteration_seconds = 10,
      .stages = {{.stage = 0,
                  .events = {event(Track::kCompute, Activity::kForward, 1, 2, 0),
                             event(Track::kCompute, Activity::kBackward, 4, 7, 0),
                             event(Track::kPipeline, Activity::kSendForward, 2, 3, 0),
                             event(Track::kData, Activity::kReduceGradients, 6, 9, -1)}}}};
  const StepPicture picture = step_picture(timeline);
  const Json json = Json::parse(picture.json);
  EXPECT_EQ(json["seconds"], 10);
  EXPECT_EQ(json["lines"][0]["name"], "stage 0");
  EXPECT_EQ(json["lines"][0]["slices"],
            Json::parse(R"([["f", 100000, 100000, 0], ["b", 200000, 300000, 0],
                            ["g", 0, 200000]])"));
  EXPECT_EQ(picture.busy.table.rows()[0],
            (std::vector<std::string>{"stage 0", "6.00 s", "60.0 %"}));
}

// A pipeline of 126 stages and 1,000 micro-batches has 252,000 slices: letters take their place.
TEST(StepPicture, OfADeepPipelineStaysSmall) {
  constexpr int kStages = 126, kMicroBatches = 1000;
  estimator::StepTimeline timeline{.iteration_seconds = 2.0 * kMicroBatches, .stages = {}};
  for (int s = 0; s < kStages; ++s) {
    estimator::StageTimeline stage{.stage = s};
    for (int m = 0; m < kMicroBatches; ++m) {
      stage.events.push_back(event(Track::kCompute, Activity::kForward, 2.0 * m, 2.0 * m + 1, m));
      stage.events.push_back(
          event(Track::kCompute, Activity::kBackward, 2.0 * m + 1, 2.0 * m + 2, m));
    }
    timeline.stages.push_back(std::move(stage));
  }
  const std::string json = step_picture(timeline).json;
  EXPECT_LT(json.size(), 300'000u);
  const std::string cells = Json::parse(json)["lines"][0]["cells"];
  EXPECT_GE(cells.size(), 100u);
  EXPECT_EQ(cells.find('.'), std::string::npos);
}

}  // namespace
}  // namespace sim
