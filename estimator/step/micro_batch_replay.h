// Forward and backward of one micro-batch: the order of a rank's profile, replayed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/compute/gpu_rates.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/replay/work_price.h"
#include "estimator/step/step_summary.h"

namespace estimator {

/// Seconds of a part of the step: kernels, and the communication for which kernels wait, by axis.
struct PartTime {
  double compute_seconds = 0;
  ExposedCommunication communication_seconds;

  double total_seconds() const;
};

/// Adds `times` x `part` to `sum`.
void add(PartTime& sum, const PartTime& part, double times = 1);
void add(ExposedCommunication& sum, const ExposedCommunication& part, double times = 1);

/// The axis for which calls of a group count: kDataContext counts as data, kEmbedding as pipeline.
double& seconds_of_axis(ExposedCommunication& communication, GroupKind group);

double sum_of(const ExposedCommunication& communication);

/// What one call of a record costs.
struct RecordPrice {
  WorkPrice price;
  double issue_seconds = 0;             ///< on the host
  std::optional<GroupKind> group = {};  ///< of a collective
  bool is_message = false;              ///< else all members of the group begin it together
  bool host_waits = false;              ///< the host waits until it is done
};

/// Of a profile: the prices of its records, in their order. What costs nothing within a micro-batch
/// is empty.
struct PricedRecords {
  std::vector<std::optional<RecordPrice>> operators;
  std::vector<std::optional<RecordPrice>> collectives;
};

/// A work of a micro-batch: seconds since its forward began, or its backward.
struct MicroBatchWork {
  std::size_t event = 0;  ///< place among the order's events
  double begin = 0, end = 0;
};

struct MicroBatchTime {
  PartTime forward;
  PartTime backward;  ///< with recompute
  /// How much longer the first one of a step takes, which has no other before it and none after it
  /// that hides the end of its communication.
  double first_added_seconds = 0;
  std::vector<MicroBatchWork> works = {};  ///< in the order of the host
};

/// When the host waits for the GPU.
struct HostWaits {
  double seconds = 0;             ///< that it then needs until it goes on: see LaunchCost
  bool at_ends_of_parts = false;  ///< it waits at the end of each forward and each backward
  /// How long before the step's first micro-batch it has last waited; empty: not at all.
  std::optional<double> before_step = 0;
};

/// Plays one micro-batch after the other through the model chunk and takes the last one. What the
/// GPU waits for the host counts as compute.
MicroBatchTime replay_micro_batch(const StepOrder& order,
                                  const PricedRecords& records,
                                  int64_t chunk,
                                  const HostWaits& waits);

}  // namespace estimator
