// A step as a Chrome trace: JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing open.
// One process for each stage, one thread for each of its tracks; sends point at the step that they
// are for. A track whose events overlap has as many threads as it needs.
//
// The format: "Trace Event Format", Google,
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
#pragma once

#include <string>

#include "estimator/step/step_timeline.h"

namespace estimator {

/// Times are in microseconds. Complete events carry what they know: micro_batch, chunk,
/// communication_us (inside a forward or backward), to_stage.
std::string chrome_trace(const StepTimeline& timeline);

}  // namespace estimator
