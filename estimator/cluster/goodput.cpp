#include "estimator/cluster/goodput.h"

#include <algorithm>
#include <cmath>

namespace estimator {

double best_interval_seconds(const FailureModel& model) {
  const double mean = model.mean_seconds_between_failures;
  const double cost = model.checkpoint_seconds;
  if (cost >= 2 * mean) return mean;
  const double ratio = cost / (2 * mean);
  return std::sqrt(2 * cost * mean) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

ExpectedTime expected_time(double work_seconds,
                           double interval_seconds,
                           const FailureModel& model) {
  ExpectedTime time{.work_seconds = work_seconds};
  const double interval = std::min(interval_seconds, work_seconds);
  if (interval <= 0) return time;
  const double mean = model.mean_seconds_between_failures;
  const double intervals = work_seconds / interval;
  // Each failure begins a restart. Those that fail in a restart undo it, so that it counts as
  // repeated: a restart is completed with the probability e^(-R/M).
  const double restarts = intervals * std::expm1((interval + model.checkpoint_seconds) / mean);
  time.failures = restarts * std::exp(model.restart_seconds / mean);
  time.checkpoint_seconds = intervals * model.checkpoint_seconds;
  const double total = time.failures * mean;
  time.repeated_seconds = total;
  if (!std::isfinite(total)) return time;
  time.restart_seconds = restarts * model.restart_seconds;
  time.repeated_seconds -= work_seconds + time.checkpoint_seconds + time.restart_seconds;
  return time;
}

}  // namespace estimator
