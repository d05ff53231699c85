// A step as a Chrome trace (base/trace_event_file.h): JSON that Perfetto (https://ui.perfetto.dev)
// and chrome://tracing open. It has one process for each stage and one thread for each track of the
// stage; a track whose events overlap has several threads. An arrow leads from each send to the
// step that uses what was sent.
#pragma once

#include <string>

#include "estimator/step/step_timeline.h"

namespace estimator {

/// The trace as JSON, with times in microseconds. Complete events have the arguments that are known
/// for them: micro_batch, chunk, communication_us (inside a forward or backward), to_stage.
std::string chrome_trace(const StepTimeline& timeline);

}  // namespace estimator
