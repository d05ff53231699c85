#include "estimator/step/axis_seconds.h"

#include <stdexcept>

namespace estimator {

GroupKind axis_group(GroupKind group, const ParallelConfig& parallelism) {
  const bool has_context = parallelism.context > 1;
  return group == GroupKind::kTensorContext && !has_context ? GroupKind::kTensor : group;
}

double& seconds_of_axis(ExposedCommunication& communication, GroupKind group) {
  switch (group) {
    case GroupKind::kTensor:
    case GroupKind::kModel:
    case GroupKind::kWorld:
      return communication.tensor;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
      return communication.pipeline;
    case GroupKind::kData:
    case GroupKind::kDataContext:
    case GroupKind::kExpertData:
    case GroupKind::kInstances:
    case GroupKind::kStage:
      return communication.data;
    case GroupKind::kContext:
    case GroupKind::kTensorContext:
      return communication.context;
    case GroupKind::kExpert:
    case GroupKind::kExpertTensor:
    case GroupKind::kExpertModel:
      return communication.expert;
  }
  throw std::logic_error("unknown group");
}

void add(ExposedCommunication& sum, const ExposedCommunication& part, double times) {
  sum.tensor += times * part.tensor;
  sum.pipeline += times * part.pipeline;
  sum.data += times * part.data;
  sum.context += times * part.context;
  sum.expert += times * part.expert;
}

double sum_of(const ExposedCommunication& c) {
  return c.tensor + c.pipeline + c.data + c.context + c.expert;
}

}  // namespace estimator
