// What is recorded of one iteration of a program: its trace, its operators and its collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/exec/messages/collective_log.h"
#include "sim/exec/steps/iteration_choice.h"
#include "sim/exec/trace/trace_recorder.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// Switches the recorders on while the chosen iteration runs. Where another iteration is chosen
/// after that, what was recorded is kept until the new one has ended. Not thread-safe.
class RecordedIteration {
 public:
  struct Result {
    int64_t iteration = 0;
    IterationFacts facts;
    std::optional<estimator::Trace> trace;
    std::vector<estimator::OperatorRecord> operators;
    CollectiveLog::Counts collectives;
  };

  /// The program is ended after so many `steps`; 0: nobody knows when.
  RecordedIteration(int64_t steps,
                    RunTracker& tracker,
                    TraceRecorder& trace,
                    CollectiveLog& collectives)
      : choice_(steps), tracker_(tracker), trace_(trace), collectives_(collectives) {}

  IterationChoice& choice() { return choice_; }
  bool is_recording() const { return recording_; }

  /// `iteration` runs, or, if `counts` is false, something that is no part of one.
  void runs(int64_t iteration, bool counts);
  /// `next` will begin. `phases` are the names of all phases until now.
  void begin(int64_t next, const std::vector<std::string>& phases);
  /// What was recorded of the running iteration does not count.
  void forget();

  /// Of the chosen iteration; of the one chosen before, if `running` shows that it has not ended.
  Result result(int64_t running, const std::vector<std::string>& phases) const;

 private:
  void stop();
  Result recorded_as(int64_t iteration,
                     const IterationFacts& facts,
                     const std::vector<std::string>& phases) const;

  IterationChoice choice_;
  RunTracker& tracker_;
  TraceRecorder& trace_;
  CollectiveLog& collectives_;
  bool recording_ = false;
  std::optional<Result> last_;  // in case the chosen iteration does not end
};

/// What makes the iteration unlike others, in the words of a profile's `recorded_with`.
/// `has_graphs`: the program has CUDA graphs; `has_backward`: it ran a backward.
std::vector<std::string> recorded_with(const IterationFacts& facts,
                                       bool has_graphs,
                                       bool has_backward);

}  // namespace sim
