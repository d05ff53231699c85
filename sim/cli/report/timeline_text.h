// A picture of the step in text.
#pragma once

#include <string>

#include "estimator/step/step_timeline.h"

namespace sim {

/// One line for each stage, `columns` wide with its label. A column is an equal part of the step
/// and shows what the stage does for most of its busy time, if half of it is busy: the last digit
/// of the micro-batch in forward, the letter with that number in backward (a is 0), "+" for the
/// weights' part of a split backward, "O" for the optimizer, "~" for communication over the data
/// ranks with nothing beside it, "." for nothing.
std::string timeline_text(const estimator::StepTimeline& timeline, int columns);

/// Columns of the terminal that standard output is, or 100 when it is none.
int output_columns();

}  // namespace sim
