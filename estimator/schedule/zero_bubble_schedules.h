// The schedules whose backward is in two parts. Only pipeline_schedule.cpp includes this; other
// code includes pipeline_schedule.h.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

std::vector<PipelineStep> zero_bubble_h1_steps(const ScheduleShape& shape, int64_t stage);
std::vector<PipelineStep> zero_bubble_v_steps(const ScheduleShape& shape, int64_t stage);
std::vector<PipelineStep> dual_pipe_v_steps(const ScheduleShape& shape, int64_t stage);

}  // namespace estimator
