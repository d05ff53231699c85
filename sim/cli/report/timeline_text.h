// Draws a picture of the step as text.
#pragma once

#include <string>

#include "estimator/step/step_timeline.h"

namespace sim {

/// One line for each stage, `columns` wide including its label. Each column is an equal part of the
/// step. If the stage is busy for at least half of it, the column shows what the stage does for
/// most of that time: the last digit of the micro-batch for a forward, the letter with that number
/// for a backward (a is 0), "+" for the weights' part of a split backward, "O" for the optimizer,
/// and "~" for communication over the data ranks that overlaps with nothing. Else it shows ".".
std::string timeline_text(const estimator::StepTimeline& timeline, int columns);

}  // namespace sim
