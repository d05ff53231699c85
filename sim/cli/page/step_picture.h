// The step for its picture: a line for each stage, or for each stream of a program.
#pragma once

#include <string>

#include "estimator/program/program_replay.h"
#include "estimator/step/step_timeline.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The step as a picture, and as a table for those who do not see it.
struct StepPicture {
  std::string json;
  TitledTable busy;  ///< how long each line works
};

/// The JSON is {"seconds", "has_chunks", "lines": [{"name", "slices": [[letter, gap, length,
/// micro-batch, chunk]]}]} with gaps and lengths in millionths of "seconds", which is the step, or
/// ProgramReplay::span() of a program. Where these would be too many, a line has "cells" in place
/// of slices: a letter for each equal part, "." for waiting. page/assets/step.js says what the
/// letters mean.
StepPicture step_picture(const estimator::StepTimeline& timeline);
StepPicture step_picture(const estimator::ProgramReplay& replayed);

}  // namespace sim
