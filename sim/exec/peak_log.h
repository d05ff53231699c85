// What filled a program's memory when it held the most, as far as that counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "estimator/profile/rank_profile.h"
#include "sim/exec/allocator_follower.h"
#include "sim/exec/program/virtual_gpu_control.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// What filled the memory at the largest peak, and the most that all users of the device together
/// held at once; 0 of a real one.
struct Peak {
  std::vector<estimator::PeakAllocation> allocations;
  std::vector<estimator::ModuleRecord> modules;
  int64_t used_bytes = 0;
};

/// What the program is made of until now.
struct ProgramParts {
  std::vector<std::string> phases;  ///< names of all of them, including the running one
  estimator::ParametersRecord parameters;
};

/// Follows the peak over requests for memory that fail. Where a program goes on after such a
/// failure and takes a step, what it held before does not count: it has caught the error and tries
/// something smaller. Nor does what follows its last step, which is begun and not ended. Not
/// thread-safe, except has_new_failure().
class PeakLog {
 public:
  PeakLog(RunTracker& tracker, AllocatorFollower& memory, const VirtualGpu& gpu)
      : tracker_(tracker), memory_(memory), gpu_(gpu) {}

  /// Whether a request failed since the last went_on().
  bool has_new_failure() const { return memory_.count_failures() > seen_failures_; }
  /// The program runs on after a failure, with `completed` phases behind it. The tracker's peak
  /// begins again.
  void went_on(const ProgramParts& parts, size_t completed);

  void step_began() { failures_before_step_ = memory_.count_failures(); }
  /// Whether a request has failed since the step began.
  bool step_has_failed() const { return memory_.count_failures() > failures_before_step_; }
  /// The step was taken: the failures before it are caught.
  void step_ended();
  /// That was the last step.
  void program_ended(const ProgramParts& parts) { at_end_ = now(parts); }

  /// Failures after which the program took steps.
  int64_t caught_failures() const { return caught_failures_; }
  /// The peak that counts; `has_ended`: the program was ended after its last step.
  Peak largest(const ProgramParts& parts, bool has_ended) const;
  /// Of the phases that count: those after a failure that was caught.
  estimator::PeakRecord largest_of(const std::vector<estimator::PhaseRecord>& phases) const;
  /// What was held beside PyTorch's allocator, and beside what was there from the start, when most
  /// was in use. `of_torch` is the allocator's own peak.
  int64_t other_libraries_bytes(const Peak& peak, const estimator::PeakRecord& of_torch) const;
  /// The request that failed and was not caught.
  std::optional<estimator::OutOfMemoryRecord> out_of_memory(
      const std::vector<std::string>& phases) const;

 private:
  Peak now(const ProgramParts& parts) const;

  RunTracker& tracker_;
  AllocatorFollower& memory_;
  const VirtualGpu& gpu_;
  int64_t failures_before_step_ = 0;
  std::atomic<int64_t> seen_failures_ = 0;  // after these the program went on
  int64_t caught_failures_ = 0;             // after these it took steps
  size_t phases_until_failure_ = 0;         // the last one that was seen
  std::optional<Peak> at_failure_;          // the first one that was seen
  std::optional<Peak> at_end_;
};

}  // namespace sim
