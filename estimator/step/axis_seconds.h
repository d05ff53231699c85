// Seconds of communication by parallel axis: for which axis the calls of a group count, and sums.
#pragma once

#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// The axis for which calls of a group count: kDataContext counts as data, kEmbedding as pipeline.
double& seconds_of_axis(ExposedCommunication& communication, GroupKind group);

/// The group by whose axis the calls of `group` count: without context ranks, the tensor and
/// context ranks are the tensor ranks.
GroupKind axis_group(GroupKind group, const ParallelConfig& parallelism);

/// Adds `times` x `part` to `sum`.
void add(ExposedCommunication& sum, const ExposedCommunication& part, double times = 1);

double sum_of(const ExposedCommunication& communication);

}  // namespace estimator
