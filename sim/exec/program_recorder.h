// Watches a program from inside its process and writes the profile of the rank that it is.
#pragma once

#include <ATen/record_function.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/rank_profile.h"
#include "sim/exec/allocator_follower.h"
#include "sim/exec/phase_log.h"
#include "sim/exec/settings.h"
#include "sim/exec/virtual_gpu_control.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// One for the process, made in its main thread when it first uses the GPU; never destroyed, since
/// torch calls it until the process ends. Functions are called from any thread.
class ProgramRecorder {
 public:
  explicit ProgramRecorder(ExecSettings settings);

  // Called by torch, through the callbacks that start() installs.
  void operator_started(const at::RecordFunction& function);
  void operator_finished(const at::RecordFunction& function);
  const VirtualGpu& gpu() const { return gpu_; }
  void node_started(const at::RecordFunction& node);
  void node_finished();
  void optimizer_made();
  void step_started();
  void step_finished();

  /// The program asked absent ranks for `what`, which cannot be invented.
  void not_answered(const std::string& what);

  void start();
  /// Writes the profile, once, and not in a forked child.
  void finish();

 private:
  /// An invented read by operator, phase and bytes.
  using ReadKey = std::tuple<std::string, std::string, int64_t>;
  struct CallKey {
    int communicator;
    std::string kind;
    std::string dtype;
    int64_t bytes;
    int peer;
    auto operator<=>(const CallKey&) const = default;
  };
  struct CallCount {
    int64_t total = 0;
    int64_t in_iteration = 0;
  };

  void memory_changes(const AllocatorFollower::Entry& entry);
  void collective_called(const onerank_nccl_call& call);
  void value_invented(int64_t bytes);
  Boundary boundary();
  void phase_changed();
  int64_t recorded_iteration() const { return settings_.steps == 1 ? 0 : 1; }

  estimator::RankProfile profile();
  estimator::ProgramRecord program_record() const;
  std::vector<estimator::CommunicatorRecord> communicator_records() const;

  const ExecSettings settings_;
  const pid_t process_;
  const VirtualGpu gpu_;
  AllocatorFollower memory_;
  RunTracker tracker_;
  PhaseLog phases_;
  std::mutex mutex_;  // of all below, and of phases_
  int step_depth_ = 0;
  bool recording_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  std::map<int, estimator::CommunicatorRecord> communicators_;
  std::map<CallKey, CallCount> calls_;
  std::map<ReadKey, int64_t> invented_reads_;
  std::vector<std::string> unanswered_;
};

}  // namespace sim
