#include "estimator/step/step_summary.h"

namespace estimator {

std::vector<StepPart> step_parts(const StepTime& time) {
  const ExposedCommunication& exposed = time.exposed_communication_seconds;
  return {{"compute", time.compute_seconds},
          {"pipeline bubble", time.bubble_seconds},
          {"tensor communication, exposed", exposed.tensor},
          {"pipeline communication, exposed", exposed.pipeline},
          {"data communication, exposed", exposed.data},
          {"context communication, exposed", exposed.context},
          {"expert communication, exposed", exposed.expert},
          {"optimizer", time.optimizer_seconds},
          {"waiting for data", time.data_loading_seconds}};
}

}  // namespace estimator
