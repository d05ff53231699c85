// The phases of a program. The program does not announce them; they are found by the steps of its
// optimizer.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// What the allocator reports at a boundary between phases: its state there, and its peak since the
/// boundary before.
struct Boundary {
  estimator::MemoryReading now;
  estimator::MemoryReading peak;
  std::chrono::steady_clock::time_point time;
};

/// An iteration lasts from the end of one optimizer step to the end of the next one. Steps without
/// a backward between them (in a program with several optimizers) belong to the same iteration, and
/// so do the steps of optimizers that step in turn, each after a backward of its own (those of a
/// generator and its discriminator): the iteration ends before the first of them steps again. The
/// closure that an optimizer is given to compute the loss (PyTorch Lightning gives one to each)
/// runs before the step, although it is called in it; steps inside a backward are one step at its
/// end (steps_in_backward.h). The phases are
/// - build_model, until the first optimizer is made or a module runs;
/// - forward, until the first optimizer is made; inference has only this one;
/// - build_optimizer, until a module runs; frameworks copy the weights meanwhile;
/// - iteration_N.forward_backward, until the step;
/// - iteration_N.optimizer_step;
/// - end, after the last step.
class PhaseLog {
 public:
  explicit PhaseLog(std::chrono::steady_clock::time_point start) { open(kBuildModel, {}, start); }

  void optimizer_made(const Boundary& boundary);
  void forward_started(const Boundary& boundary);
  void step_started(const Boundary& boundary);
  /// The step that has started is that of the optimizer with this key. Without it, it is of the
  /// same one as the step before. Of several calls for a step the first counts.
  void optimizer_told(uint64_t key);
  void closure_started(const Boundary& boundary);
  void closure_finished(const Boundary& boundary);
  void step_finished(const Boundary& boundary);
  /// The step failed, so that its iteration goes on.
  void step_failed(const Boundary& boundary);
  /// A request for memory had failed, and the program goes on: the phase begins again.
  void went_on(const Boundary& boundary) { change(std::string(running_.name), boundary); }
  /// The program slept, or waited for its data loader.
  void host_waited(double seconds, bool loads_data) {
    if (!running_.waits) running_.waits.emplace();
    (loads_data ? running_.waits->loading_seconds : running_.waits->sleeping_seconds) += seconds;
  }
  void backward_ran() { backward_since_step_ = true; }

  /// The phases up to now, including the running one.
  std::vector<estimator::PhaseRecord> finished(const Boundary& boundary) const;
  /// The phases without the running one, since what follows the last step does not count.
  const std::vector<estimator::PhaseRecord>& completed() const { return phases_; }

  /// Whether the running phase ends when a module runs.
  bool is_building() const {
    return running_.name == kBuildModel || running_.name == kBuildOptimizer;
  }
  bool has_backward_since_step() const { return backward_since_step_; }
  /// The iteration that is running, from 0.
  int64_t iteration() const { return iteration_; }
  const std::string& running() const { return running_.name; }
  /// Whether what runs belongs to an iteration. Of a program without modules, the first forward is
  /// in the phase before.
  bool is_in_iteration() const;
  /// That of what runs where nothing else tells it: a step's, forward, or outside iterations
  /// estimator::Direction::kReduceGradients, which is of no micro-batch.
  estimator::Direction direction() const;

 private:
  static constexpr const char* kBuildModel = "build_model";
  static constexpr const char* kBuildOptimizer = "build_optimizer";

  void open(std::string name,
            const estimator::MemoryReading& before,
            std::chrono::steady_clock::time_point time);
  void change(std::string name, const Boundary& boundary);
  estimator::PhaseRecord closed(const Boundary& boundary) const;
  void reopen_last(const Boundary& boundary);
  bool has_stepped() const { return iteration_ > 0 || is_open_; }
  void step_belongs_to(uint64_t key);
  void begin_turn(uint64_t key);
  void rename_step();
  std::string iteration_phase(const char* part) const;

  std::vector<estimator::PhaseRecord> phases_;
  estimator::PhaseRecord running_;
  std::chrono::steady_clock::time_point started_;
  int64_t iteration_ = 0;
  bool backward_since_step_ = false;
  bool continues_last_step_ = false;
  std::set<uint64_t> stepped_;   // optimizers that did, in the iteration of the last step
  std::set<uint64_t> expected_;  // those of the iteration before
  bool is_open_ = false;         // not all of these have stepped in the iteration
  bool is_told_ = false;         // of which optimizer the running step is
  uint64_t key_ = 0;             // that one's, or that of the last step of which it was told
  bool is_first_turn_ = false;   // of the stepping optimizer, in the iteration
};

}  // namespace sim
