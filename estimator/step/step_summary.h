// The time of one optimizer step, and its parts.
#pragma once

#include <optional>
#include <vector>

#include "estimator/base/option.h"
#include "estimator/base/tagged.h"

namespace estimator {

struct ExposedCommunication {
  double tensor = 0, pipeline = 0, data = 0, context = 0, expert = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, ExposedCommunication& exposed) {
  visit("tensor", exposed.tensor, "seconds");
  visit("pipeline", exposed.pipeline, "seconds");
  visit("data", exposed.data, "seconds");
  visit("context", exposed.context, "seconds");
  visit("expert", exposed.expert, "seconds");
}

/// Parts of an optimizer step on the host. They run at the same time or one after the other.
struct OffloadTime {
  double to_host_seconds = 0;
  double update_seconds = 0;
  double to_device_seconds = 0;
  double total_seconds = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, OffloadTime& offload) {
  visit("to_host_seconds", offload.to_host_seconds, "gradients on their way to the host");
  visit("update_seconds", offload.update_seconds, "the host's CPUs");
  visit("to_device_seconds", offload.to_device_seconds, "parameters on their way back");
  visit("total_seconds", offload.total_seconds, "from the first gradient to the last parameter");
}

/// Seconds of the stage that is busy longest. The parts add up to iteration_seconds.
struct StepTime {
  double iteration_seconds = 0;
  int64_t stage = 0;
  double compute_seconds = 0;
  double bubble_seconds = 0;
  ExposedCommunication exposed_communication_seconds;
  double optimizer_seconds = 0;
  std::optional<OffloadTime> offload;
  double data_loading_seconds = 0;
  Source source = Source::kComputed;
};
template <class Visitor>
void visit_fields(Visitor& visit, StepTime& time) {
  visit("iteration_seconds", time.iteration_seconds, "one optimizer step");
  visit("stage", time.stage, "the pipeline stage that is busy longest, whose parts these are");
  visit("compute_seconds", time.compute_seconds, "kernels of forward and backward");
  visit("bubble_seconds", time.bubble_seconds, "waiting for other stages");
  visit("exposed_communication_seconds",
        time.exposed_communication_seconds,
        "not hidden behind compute");
  visit("optimizer_seconds", time.optimizer_seconds, "optimizer step");
  visit("offload", time.offload, "what of it is the host's, where it has a part");
  visit("data_loading_seconds", time.data_loading_seconds, "waiting for the data loader");
  visit("source", time.source, "where the numbers come from");
}

/// A part of a step, as reports name it.
struct StepPart {
  const char* name;
  double seconds = 0;
};

/// All parts, whose sum is the iteration; those that take no time, too.
std::vector<StepPart> step_parts(const StepTime& time);

}  // namespace estimator
