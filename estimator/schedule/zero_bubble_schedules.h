// The schedules whose backward is in two parts. For pipeline_schedule.cpp, whose header is the one
// to include.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

std::vector<PipelineStep> zero_bubble_h1_steps(const ScheduleShape& shape, int64_t stage);
std::vector<PipelineStep> zero_bubble_v_steps(const ScheduleShape& shape, int64_t stage);
std::vector<PipelineStep> dual_pipe_v_steps(const ScheduleShape& shape, int64_t stage);

}  // namespace estimator
