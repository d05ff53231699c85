// Optimizers, their steps, and the phases and iterations that these make.
#include <string>
#include <utility>

#include "estimator/base/files.h"
#include "sim/exec/program/python.h"
#include "sim/exec/program_recorder.h"

namespace sim {

using estimator::Direction;

/// What was tried before it does not count if the program takes steps now.
void ProgramRecorder::went_on_after_failure() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (!peaks_.has_new_failure()) return;
  phases_.went_on(here);
  peaks_.went_on(parts(), phases_.completed().size());
  if (recorded_.is_recording()) recorded_.forget();
  recorded_.choice().began_again(phases_.iteration());
  phase_changed();
}

void ProgramRecorder::backward_runs() {
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = !phases_.has_backward_since_step();
    phases_.backward_ran();
    captured_steps_.backward_ran();
    recorded_.choice().backward_ran(phases_.iteration());
    if (!is_first) return;
  }
  end_after_last_step();
}

void ProgramRecorder::end_after_last_step() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || !took_last_step()) return;
    stopped_ = true;
  }
  finish();
  end_program();
}

void ProgramRecorder::optimizer_made() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  phases_.optimizer_made(here);
  phase_changed();
}

void ProgramRecorder::forward_started() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  phases_.forward_started(here);
  phase_changed();
}

/// An optimizer may step others: the outermost counts, and takes the peaks of those inside. A step
/// that a CUDA graph captures is taken at each launch of the graph.
void ProgramRecorder::step_started() {
  {
    const std::lock_guard lock(mutex_);
    if (step_depth_++ > 0) return;
    step_is_captured_ = captured_steps_.is_capturing();
    if (step_is_captured_) return tracker_.set_direction(Direction::kOptimizerStep);
  }
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  peaks_.step_began();
  const int64_t before = phases_.iteration();
  phases_.step_started(here);
  if (phases_.iteration() < before) had_gone_on_until(before);
  phase_changed();
}

/// What seemed to be `iteration` belongs to the one before.
void ProgramRecorder::had_gone_on_until(int64_t iteration) {
  if (iteration == recorded_.choice().chosen()) recorded_.forget();
  recorded_.choice().had_gone_on_until(iteration);
}

void ProgramRecorder::optimizer_told(uint64_t key) {
  const std::lock_guard lock(mutex_);
  if (is_captured_step()) captured_steps_.optimizer_told(key);
  if (!is_of_step()) return;
  const int64_t before = phases_.iteration();
  phases_.optimizer_told(key);
  const int64_t now = phases_.iteration();
  if (now == before) return;
  if (now < before) had_gone_on_until(before);
  if (now > before) {
    recorded_.choice().had_other_steps(before);
    recorded_.begin(now + 1, phase_names());  // what this one began with was not recorded
  }
  phase_changed();
}

void ProgramRecorder::host_waited(double seconds, bool loads_data) {
  const std::lock_guard lock(mutex_);
  phases_.host_waited(seconds, loads_data);
}

void ProgramRecorder::code_compiled() {
  const std::lock_guard lock(mutex_);
  recorded_.choice().compiled(phases_.iteration());
}

/// Of an optimizer inside another, its closure is the outer one's business.
void ProgramRecorder::change_step(void (PhaseLog::*change)(const Boundary&)) {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (!is_of_step()) return;
  (phases_.*change)(here);
  phase_changed();
}

void ProgramRecorder::closure_started() { change_step(&PhaseLog::closure_started); }

void ProgramRecorder::closure_finished() { change_step(&PhaseLog::closure_finished); }

void ProgramRecorder::step_finished() {
  {
    const std::lock_guard lock(mutex_);
    if (--step_depth_ > 0) return;
    if (std::exchange(step_is_captured_, false)) {
      return tracker_.set_direction(phases_.direction());
    }
  }
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (peaks_.step_has_failed()) {
    phases_.step_failed(here);
    return phase_changed();
  }
  const int64_t stepped = phases_.iteration();
  phases_.step_finished(here);
  peaks_.step_ended();
  const bool has_ended = phases_.iteration() > stepped;  // else other optimizers step in it, too
  if (has_ended) {
    recorded_.begin(phases_.iteration(), phase_names());
    tracker_.end_iteration();
  }
  phase_changed();
  estimator::write_file_whole((folder_ / kStepsTaken).string(),
                              std::to_string(phases_.iteration()));
  if (took_last_step()) peaks_.program_ended(parts());
}

bool ProgramRecorder::took_last_step() const {
  return settings_.steps > 0 && phases_.iteration() >= settings_.steps;
}

bool ProgramRecorder::has_ended_program() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void ProgramRecorder::phase_changed() {
  recorded_.runs(phases_.iteration(), phases_.is_in_iteration());
  find_device();
  is_building_ = phases_.is_building();
  tracker_.end_phase();
  tracker_.begin_phase(static_cast<int32_t>(phases_.completed().size()), phases_.direction());
}

}  // namespace sim
