// What failures and checkpoints leave of a training's time.
//
// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
// Generation Computer Systems 22 (2006): failures are a Poisson process, training stands still
// while it saves, and a failure costs the work since the last checkpoint and a restart, in which it
// may fail again.
#pragma once

namespace estimator {

struct FailureModel {
  double mean_seconds_between_failures = 0;
  double checkpoint_seconds = 0;  ///< that training stands still for one
  double restart_seconds = 0;     ///< from a failure to training again
};

/// Seconds of work between checkpoints that waste least: Daly's equation 37, a refinement of
/// Young's sqrt(2 C M).
double best_interval_seconds(const FailureModel& model);

/// Expected seconds for `work_seconds` of training, saved every `interval_seconds` of it, and where
/// they go; the parts add up. Daly's equation 20: M e^(R/M) (e^((t+C)/M) - 1) for each interval t.
/// Infinite where failures come too fast for any progress.
struct ExpectedTime {
  double work_seconds = 0;
  double checkpoint_seconds = 0;
  double restart_seconds = 0;   ///< failures x a restart
  double repeated_seconds = 0;  ///< work, saving and restarting that failures undid
  double failures = 0;

  double total_seconds() const {
    return work_seconds + checkpoint_seconds + restart_seconds + repeated_seconds;
  }
};
ExpectedTime expected_time(double work_seconds, double interval_seconds, const FailureModel& model);

}  // namespace estimator
