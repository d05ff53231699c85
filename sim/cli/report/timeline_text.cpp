#include "sim/cli/report/timeline_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/units.h"
#include "sim/cli/report/timeline_columns.h"

namespace sim {
namespace {

using estimator::Activity;
using estimator::StageTimeline;
using estimator::TimelineEvent;
using estimator::Track;

constexpr char kData = '~';

char letter_of(const TimelineEvent& event) {
  const auto digit = static_cast<char>(event.micro_batch % 10);
  switch (event.activity) {
    case Activity::kForward:
      return static_cast<char>('0' + digit);
    case Activity::kBackward:
    case Activity::kBackwardInput:
      return static_cast<char>('a' + digit);
    case Activity::kBackwardWeight:
      return '+';
    case Activity::kOptimizer:
      return 'O';
    default:
      return kData;
  }
}

double busy_seconds(const StageTimeline& stage) {
  double seconds = 0;
  for (const TimelineEvent& event : stage.events) {
    if (event.track == Track::kCompute) seconds += event.end_seconds - event.begin_seconds;
  }
  return seconds;
}

}  // namespace

std::string timeline_text(const estimator::StepTimeline& timeline, int columns) {
  constexpr int kLabelColumns = 20;  // "  stage 15 |...|  97 %"
  constexpr int kLeastColumns = 20;
  if (!(timeline.iteration_seconds > 0)) return "\nThe step takes no time: nothing was priced\n";
  const int width = std::max(kLeastColumns, columns - kLabelColumns - 2);
  std::string text = fmt::format("\nThe step, {} for each column\n",
                                 estimator::format_duration(timeline.iteration_seconds / width));
  for (const StageTimeline& stage : timeline.stages) {
    TimelineColumns line(width, timeline.iteration_seconds, kData);
    for (const TimelineEvent& event : stage.events) {
      if (event.track == Track::kPipeline) continue;
      line.add(letter_of(event), event.begin_seconds, event.end_seconds);
    }
    text += fmt::format("  stage {:>3} |{}| {:>3.0f} %\n",
                        stage.stage,
                        line.text(),
                        100 * busy_seconds(stage) / timeline.iteration_seconds);
  }
  return text +
         "  0-9 forward and a-j backward of micro-batch ..0 to ..9, O optimizer, ~ data "
         "communication, . waiting\n";
}

}  // namespace sim
