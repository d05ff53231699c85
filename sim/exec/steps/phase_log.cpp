#include "sim/exec/steps/phase_log.h"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

using estimator::MemoryReading;
using estimator::PhaseRecord;

constexpr const char* kForward = "forward";
constexpr const char* kForwardBackward = "forward_backward";
constexpr const char* kStepPhase = "optimizer_step";

MemoryReading larger(const MemoryReading& a, const MemoryReading& b) {
  return {.allocated_bytes = std::max(a.allocated_bytes, b.allocated_bytes),
          .reserved_bytes = std::max(a.reserved_bytes, b.reserved_bytes)};
}

}  // namespace

void PhaseLog::optimizer_made(const Boundary& boundary) {
  if (running_.name == kBuildModel || running_.name == kForward) change(kBuildOptimizer, boundary);
}

void PhaseLog::forward_started(const Boundary& boundary) {
  if (running_.name == kBuildModel) change(kForward, boundary);
  if (running_.name == kBuildOptimizer) change(iteration_phase(kForwardBackward), boundary);
}

/// Where no module ran, the first forward began unseen.
void PhaseLog::step_started(const Boundary& boundary) {
  is_told_ = is_first_turn_ = false;
  continues_last_step_ = has_stepped() && !backward_since_step_;
  if (continues_last_step_) {
    if (!is_open_) --iteration_;
    return reopen_last(boundary);
  }
  if (running_.name == kBuildOptimizer) running_.name = iteration_phase(kForwardBackward);
  change(iteration_phase(kStepPhase), boundary);
}

void PhaseLog::optimizer_told(uint64_t key) {
  if (std::exchange(is_told_, true)) return;
  key_ = key;
  if (!continues_last_step_) return step_belongs_to(key);
  is_first_turn_ = stepped_.insert(key).second;
}

/// That the iteration of the last step had gone on, or had ended, shows when the next optimizer
/// steps.
void PhaseLog::step_belongs_to(uint64_t key) {
  const bool is_again = stepped_.empty() || stepped_.count(key) != 0;
  if (is_open_ == is_again) {
    iteration_ += is_open_ ? 1 : -1;
    rename_step();
  }
  if (is_again) return begin_turn(key);
  stepped_.insert(key);
}

void PhaseLog::begin_turn(uint64_t key) {
  expected_ = std::exchange(stepped_, {key});
  is_open_ = false;
}

void PhaseLog::rename_step() {
  phases_.back().name = iteration_phase(kForwardBackward);
  running_.name = iteration_phase(kStepPhase);
}

/// The first module ran long ago, or runs in the closure.
void PhaseLog::closure_started(const Boundary& boundary) {
  if (continues_last_step_) {
    if (!is_first_turn_) {
      ++iteration_;
      begin_turn(key_);
    }
    change(iteration_phase(kForwardBackward), boundary);
  } else if (phases_.back().name == iteration_phase(kForwardBackward)) {
    reopen_last(boundary);
  } else {
    running_.name = iteration_phase(kForwardBackward);
  }
  continues_last_step_ = false;
}

void PhaseLog::closure_finished(const Boundary& boundary) {
  change(iteration_phase(kStepPhase), boundary);
}

void PhaseLog::step_finished(const Boundary& boundary) {
  if (!is_told_ && !continues_last_step_) step_belongs_to(key_);
  is_open_ = !std::includes(stepped_.begin(), stepped_.end(), expected_.begin(), expected_.end());
  if (!is_open_) ++iteration_;
  backward_since_step_ = false;
  change(iteration_phase(kForwardBackward), boundary);
}

void PhaseLog::step_failed(const Boundary& boundary) {
  change(iteration_phase(kForwardBackward), boundary);
}

std::vector<PhaseRecord> PhaseLog::finished(const Boundary& boundary) const {
  std::vector<PhaseRecord> phases = phases_;
  phases.push_back(closed(boundary));
  if (has_stepped() && !backward_since_step_) phases.back().name = "end";
  return phases;
}

void PhaseLog::open(std::string name,
                    const MemoryReading& before,
                    std::chrono::steady_clock::time_point time) {
  running_ = {.name = std::move(name), .before = before};
  started_ = time;
}

void PhaseLog::change(std::string name, const Boundary& boundary) {
  phases_.push_back(closed(boundary));
  open(std::move(name), boundary.now, boundary.time);
}

PhaseRecord PhaseLog::closed(const Boundary& boundary) const {
  PhaseRecord phase = running_;
  phase.after = boundary.now;
  phase.peak = larger(phase.peak, boundary.peak);
  phase.seconds += std::chrono::duration<double>(boundary.time - started_).count();
  return phase;
}

/// What the running phase was until now becomes part of the one before.
void PhaseLog::reopen_last(const Boundary& boundary) {
  running_ = std::move(phases_.back());
  phases_.pop_back();
  running_.peak = larger(running_.peak, boundary.peak);
  started_ = boundary.time;
}

bool PhaseLog::is_in_iteration() const {
  return running_.name.starts_with("iteration_") || running_.name == kBuildOptimizer;
}

estimator::Direction PhaseLog::direction() const {
  if (!is_in_iteration()) return estimator::Direction::kReduceGradients;
  return running_.name.ends_with(kStepPhase) ? estimator::Direction::kOptimizerStep
                                             : estimator::Direction::kForward;
}

std::string PhaseLog::iteration_phase(const char* part) const {
  return "iteration_" + std::to_string(iteration_) + "." + part;
}

}  // namespace sim
