#include "sim/exec/recorded_iteration.h"

#include <utility>

#include "sim/exec/trace/launched_kernels.h"
#include "sim/tracking/attribution.h"

namespace sim {

void RecordedIteration::runs(int64_t iteration, bool counts) {
  const bool record = counts && iteration == choice_.chosen();
  if (!record) return stop();
  if (std::exchange(recording_, true)) return;
  tracker_.set_recording(true);
  trace_.start(iteration);
}

void RecordedIteration::stop() {
  if (!std::exchange(recording_, false)) return;
  tracker_.set_recording(false);
  trace_.stop();
}

void RecordedIteration::begin(int64_t next, const std::vector<std::string>& phases) {
  choice_.compare(next);
  const int64_t chosen = choice_.chosen();
  const IterationFacts facts = choice_.facts();
  if (!choice_.iteration_began(next)) return;
  stop();
  last_ = recorded_as(chosen, facts, phases);
  forget();
}

void RecordedIteration::forget() {
  stop();
  tracker_.forget_operators();
  trace_.forget();
  collectives_.forget_iteration();
}

RecordedIteration::Result RecordedIteration::result(int64_t running,
                                                    const std::vector<std::string>& phases) const {
  const bool has_ended = running > choice_.chosen();
  if (!has_ended && last_) return *last_;
  return recorded_as(choice_.chosen(), choice_.facts(), phases);
}

RecordedIteration::Result RecordedIteration::recorded_as(
    int64_t iteration, const IterationFacts& facts, const std::vector<std::string>& phases) const {
  return {.iteration = iteration,
          .facts = facts,
          .trace = trace_.trace(),
          .operators = tracker_.locked(
              [&](const TrackedRun& run) { return counted_operators(run, phases); }),
          .collectives = collectives_.iteration()};
}

std::vector<std::string> recorded_with(const IterationFacts& facts,
                                       bool has_graphs,
                                       bool has_backward) {
  std::vector<std::string> found;
  if (facts.compiles) found.emplace_back(estimator::kWithCompilation);
  if (facts.captures_graph) found.emplace_back(estimator::kWithGraphCapture);
  if (facts.has_other_steps) found.emplace_back(estimator::kWithOtherSteps);
  if (facts.has_other_calls) found.emplace_back(estimator::kWithOtherCalls);
  if (facts.multiplies_more) found.emplace_back(estimator::kWithMoreProducts);
  if (facts.later_ones_multiply_more) found.emplace_back(estimator::kWithLessWork);
  if (has_graphs && !facts.launches_graph) found.emplace_back(estimator::kWithoutGraph);
  if (has_backward && !facts.runs_backward) found.emplace_back(estimator::kWithoutBackward);
  return found;
}

}  // namespace sim
