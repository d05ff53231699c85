// Short names of the schedules, for tests.
#pragma once

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

constexpr ScheduleKind kGpipe = ScheduleKind::kGpipe;
constexpr ScheduleKind k1f1b = ScheduleKind::kOneForwardOneBackward;
constexpr ScheduleKind kZbH1 = ScheduleKind::kZeroBubbleH1;
constexpr ScheduleKind kZbV = ScheduleKind::kZeroBubbleV;
constexpr ScheduleKind kDualPipeV = ScheduleKind::kDualPipeV;

}  // namespace estimator
