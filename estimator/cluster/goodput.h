// How failures and checkpoints lengthen a training.
//
// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
// Generation Computer Systems 22 (2006): failures are a Poisson process, training stands still
// while it saves, and a failure costs the work since the last checkpoint and a restart, in which it
// may fail again.
#pragma once

namespace estimator {

struct FailureModel {
  double mean_seconds_between_failures = 0;
  double checkpoint_seconds = 0;  ///< time that training stands still for one checkpoint
  double restart_seconds = 0;     ///< from a failure to training again
};

/// The seconds of work between checkpoints with which the least time is lost: Daly's equation 37, a
/// refinement of Young's sqrt(2 C M).
double best_interval_seconds(const FailureModel& model);

/// The expected seconds for `work_seconds` of training with a checkpoint after every
/// `interval_seconds` of work, divided into parts. Daly's equation 20: M e^(R/M) (e^((t+C)/M) - 1)
/// for each interval t. Infinite if failures come too fast for any progress.
struct ExpectedTime {
  double work_seconds = 0;
  double checkpoint_seconds = 0;
  double restart_seconds = 0;   ///< number of completed restarts x time of a restart
  double repeated_seconds = 0;  ///< work, saving and restarting that failures make void
  double failures = 0;

  double total_seconds() const {
    return work_seconds + checkpoint_seconds + restart_seconds + repeated_seconds;
  }
};
ExpectedTime expected_time(double work_seconds, double interval_seconds, const FailureModel& model);

}  // namespace estimator
