// Watches a program from inside its process, and writes the profile of the rank that the program
// is.
#pragma once

#include <ATen/record_function.h>
#include <sys/types.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/rank_profile.h"
#include "sim/exec/allocator_follower.h"
#include "sim/exec/messages/collective_log.h"
#include "sim/exec/messages/nccl_messages.h"
#include "sim/exec/peak_log.h"
#include "sim/exec/program/settings.h"
#include "sim/exec/program/virtual_gpu_control.h"
#include "sim/exec/recorded_iteration.h"
#include "sim/exec/steps/captured_steps.h"
#include "sim/exec/steps/compiled_steps.h"
#include "sim/exec/steps/phase_log.h"
#include "sim/exec/steps/steps_in_backward.h"
#include "sim/exec/trace/trace_recorder.h"
#include "sim/exec/trace/traced_work.h"
#include "sim/exec/values/assumptions.h"
#include "sim/exec/values/known_tensors.h"
#include "sim/exec/values/operator_facts.h"
#include "sim/exec/values/written_memory.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// There is one recorder in a process. It is made in the main thread when the process first uses
/// the GPU, and is never destroyed, because torch calls it until the process ends. Functions may be
/// called from any thread.
class ProgramRecorder {
 public:
  /// `folder` is where it writes its files; see kExecFolderVariable.
  ProgramRecorder(ExecSettings settings, const std::filesystem::path& folder);

  // Called by torch, through the callbacks that start() installs.
  void operator_started(const at::RecordFunction& function, const OperatorFacts& facts);
  void operator_finished(const at::RecordFunction& function);
  const VirtualGpu& gpu() const { return gpu_; }
  /// A kernel of an operator wrote there.
  void memory_written(const MemoryRange& range) { messages_.written(range.address, range.bytes); }
  Assumptions& assumptions() { return assumptions_; }
  /// Called when an operator with an assumed result has finished and the host has followed it.
  void assume(const at::RecordFunction& function, const Assumptions::Call& call) {
    tell_tracker([&] { assumptions_.operator_finished(function, call, gpu_); });
  }
  void range_started(std::string_view name) { trace_.range_started(name); }
  void node_started(const at::RecordFunction& node);
  void node_finished();
  void optimizer_made();
  void step_started();
  void step_finished();
  /// Whose step has started: see PhaseLog::optimizer_told().
  void optimizer_told(uint64_t key);
  /// Code is compiled, or what was compiled is loaded.
  void code_compiled();
  void closure_started();
  void closure_finished();
  CompiledSteps& compiled_steps() { return compiled_steps_; }
  StepsInBackward& steps_in_backward() { return steps_in_backward_; }

  // Called by the observer in Python (observer).
  void module_entered(const char* path);
  void module_left();
  void memory_lasts(uint64_t address, const char* category, const char* name);
  void tensor_lies(uint64_t address, int64_t bytes);
  static void kernel_reads(std::span<const uint64_t> addresses);
  void attention_started(const FlexAttention& attention, const std::string& dtype);
  void product_started(const onerank_virtual_gpu_product& product);
  void work_finished();
  void tuned(const estimator::TunedRecord& tuned);
  bool read_known(uint64_t address, int64_t bytes, void* values) const;
  void tensor_holds(uint64_t address, int64_t bytes, const void* values);
  void kernel_updates(const char* name, std::span<const uint64_t> addresses, int64_t updated);
  void experts_chosen(const Assumptions::Routes& routes);
  void model_reads(uint64_t model, int64_t integers);
  void evaluation_started() { trace_.evaluation_started(); }
  void evaluation_finished() { trace_.evaluation_finished(); }
  void host_updated(int64_t bytes, bool is_fused);
  void host_waited(double seconds, bool loads_data);
  /// The process group has this rank and world size.
  void rank_told(int64_t rank, int64_t world_size);
  /// Sets all parameters that are known now: a JSON list of estimator::ParameterRecord.
  void parameters_told(const char* json);

  /// See kExceptions.
  void raised(const std::string& exception) const;
  /// Ends the program if it took its last step.
  void end_after_last_step();
  /// Whether the program was told to end after its last step.
  bool has_ended_program();

  /// A count that nobody knows sizes what the operator `reader` reads or makes.
  void refuse_count(const std::string& reader);
  /// The program asked absent ranks for `what`, which cannot be invented.
  void not_answered(const std::string& what);

  /// `library` is the path of this library; the observer lies beside it.
  void start(const std::filesystem::path& library);
  /// Writes nothing, now or later.
  void leave_out();
  /// Writes the profile and the memory files. Does so only once, and not in a forked child.
  void finish();

 private:
  struct Rank {
    int64_t rank = 0;
    int64_t world_size = 1;
  };
  static Rank launched_rank(const ExecSettings& settings);
  /// An invented read by operator, phase and bytes.
  using ReadKey = std::tuple<std::string, std::string, int64_t>;
  /// Runs `tell`. Torch's threads must not see an exception, so the tracker keeps the first one.
  template <class Tell>
  void tell_tracker(const Tell& tell) noexcept {
    try {
      tell();
    } catch (...) {
      tracker_.keep_error(std::current_exception());
    }
  }
  void watch_nccl();
  void watch_gpu();
  void memory_changes(const AllocatorFollower::Entry& entry);
  void collective_called(const onerank_nccl_call& call);
  void count_call(const CollectiveLog::Key& call);
  void capture_call(const onerank_nccl_call& call, const CollectiveLog::Key& key, uint64_t mark);
  void captured_call_runs(uint64_t mark);
  void note_product(const onerank_virtual_gpu_product* product);
  void parameters_gathered(const at::RecordFunction& copy_out);
  /// Autograd runs a node, or a CUDA graph is launched.
  void backward_runs();
  void device_event(const onerank_virtual_gpu_event& event);
  void went_on_after_failure();
  void capture_began(uint64_t graph);
  void capture_ended();
  void graph_launched();
  void graph_has_run(uint64_t graph);
  void kernel_launched(const uint64_t* addresses, int64_t count);
  void value_invented(const void* address, int64_t bytes);
  void refuse(const std::string& what);
  /// What absent ranks send, as far as it is asked for, is there.
  void settle_messages();
  Boundary boundary();
  void forward_started();
  void find_device();
  void phase_changed();
  void had_gone_on_until(int64_t iteration);  ///< the mutex is held
  void change_step(void (PhaseLog::*change)(const Boundary&));
  Rank rank_in(const std::vector<estimator::CommunicatorRecord>& communicators) const;
  bool took_last_step() const;  ///< of --steps; the mutex is held
  // The mutex is held by the callers of these.
  std::vector<std::string> phase_names() const;
  ProgramParts parts() const;
  bool is_captured_step() const { return step_depth_ == 1 && step_is_captured_; }
  bool is_of_step() const { return step_depth_ == 1 && !step_is_captured_; }

  estimator::RankProfile profile();
  void write_memory_files(const estimator::RankProfile& profile);
  estimator::ProgramRecord program_record(const RecordedIteration::Result& recorded) const;

  const ExecSettings settings_;
  const pid_t process_;
  const std::filesystem::path folder_;  // of this process
  const VirtualGpu gpu_;
  estimator::DeviceRecord device_;  // read while the driver works: it may be gone at the end
  RunTracker tracker_;
  AllocatorFollower memory_;
  TraceRecorder trace_;
  CollectiveLog collectives_;
  NcclMessages messages_;
  Assumptions assumptions_;
  CompiledSteps compiled_steps_;
  StepsInBackward steps_in_backward_{[this] {
    step_started();
    step_finished();
  }};
  PhaseLog phases_;
  std::atomic<bool> is_building_ = true;  // see PhaseLog::is_building
  std::mutex mutex_;                      // of all below, and of phases_
  Rank rank_;
  std::vector<estimator::ParameterRecord> parameters_;
  bool joins_world_ = false;
  PeakLog peaks_{tracker_, memory_, gpu_};
  RecordedIteration recorded_{settings_.steps, tracker_, trace_, collectives_};
  CapturedSteps captured_steps_;
  std::map<uint64_t, CollectiveLog::Key> captured_calls_;  // by their marks in graphs
  int step_depth_ = 0;
  bool step_is_captured_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  std::map<ReadKey, int64_t> invented_reads_;
  std::vector<std::string> unanswered_;
  std::vector<estimator::TunedRecord> tuned_;
};

}  // namespace sim
