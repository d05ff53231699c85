// What every module of the shard is built with.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "estimator/parallel_layout.h"
#include "estimator/plan.h"
#include "models/communicator.h"
#include "models/observer.h"
#include "models/parameters.h"

namespace models {

c10::ScalarType scalar_type(estimator::Dtype dtype);

struct ShardContext {
  const estimator::Plan& plan;
  estimator::RankCoordinate coordinate;
  ProcessGroups groups;
  at::Device device;
  Observer& observer;

  int64_t tensor_size() const { return plan.parallelism.tensor; }
  bool sequence_parallel() const { return plan.parallelism.sequence_parallel; }
  bool megatron() const { return plan.training.dialect == estimator::Dialect::kMegatronLm; }
  int64_t stages() const { return plan.parallelism.pipeline; }
  bool is_first_stage() const { return coordinate.pipeline == 0; }
  bool is_last_stage() const { return coordinate.pipeline == stages() - 1; }
  at::TensorOptions options() const {
    return at::TensorOptions().device(device).dtype(scalar_type(plan.training.dtype));
  }
  /// Rows of the residual stream on this rank: the sequence, or its part under sequence
  /// parallelism.
  int64_t local_sequence() const {
    return plan.sequence_length() / (sequence_parallel() ? tensor_size() : 1);
  }
};

}  // namespace models
