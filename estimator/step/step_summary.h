// The time of one optimizer step, and what it is made of.
#pragma once

#include "estimator/base/fields.h"
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

/// Seconds of the stage that ends last; they add up to iteration_seconds.
struct StepTime {
  double iteration_seconds = 0;
  double compute_seconds = 0;
  double bubble_seconds = 0;
  ExposedCommunication exposed_communication_seconds;
  double optimizer_seconds = 0;
  double data_loading_seconds = 0;
  Source source = Source::kComputed;
};
template <class Visitor>
void visit_fields(Visitor& visit, StepTime& time) {
  visit("iteration_seconds", time.iteration_seconds, "one optimizer step");
  visit("compute_seconds", time.compute_seconds, "kernels of forward and backward");
  visit("bubble_seconds", time.bubble_seconds, "waiting for other stages");
  visit("exposed_communication_seconds",
        time.exposed_communication_seconds,
        "not hidden behind compute");
  visit("optimizer_seconds", time.optimizer_seconds, "optimizer step");
  visit("data_loading_seconds", time.data_loading_seconds, "waiting for the data loader");
  visit("source", time.source, "where the numbers come from");
}

}  // namespace estimator
