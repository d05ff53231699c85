// Records the trace of a program's iteration: what it asked of the virtual GPU and of NCCL, in the
// order of its host, with the operators and modules that asked for it.
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/trace.h"
#include "sim/exec/trace/kernel_arguments.h"
#include "sim/exec/trace/nccl_group.h"
#include "sim/exec/trace/program_clock.h"
#include "sim/exec/trace/traced_iteration.h"
#include "sim/tracking/operator_call.h"
#include "sim/tracking/run_tracker.h"
#include "sim/virtual_gpu/control.h"

namespace sim {

/// Thread-safe. Whoever calls it keeps the order: operators of one thread are nested, and events
/// come in the order in which the program caused them.
///
/// A kernel belongs to the innermost operator that runs on its thread. What the operator's tensors
/// tell (shapes, FLOPs, bytes) is known when it ends, and is divided among its kernels by their
/// threads; FLOPs go to the kernel that multiplies. What a CUDA graph launches belongs to the
/// operators that ran while it was captured.
///
/// From the first event on whose time the program can ask for, what it asks of its device is also
/// told to a clock, at all times.
class TraceRecorder {
 public:
  /// `tracker` knows where threads are in the program, and the blocks of memory. The clock is that
  /// of `device`.
  TraceRecorder(RunTracker& tracker, ClockedDevice device)
      : tracker_(tracker), device_(std::move(device)), arguments_(tracker) {}

  /// Begins the trace of `iteration`, and ends it. Between them it may be stopped and started again
  /// (a program with several optimizers steps them one after the other).
  void start(int64_t iteration);
  void stop();
  /// What was recorded does not count. Called between stop() and start().
  void forget();

  /// As of KernelArguments.
  void tensor_lies(uint64_t address, int64_t bytes);
  void kernel_updates(const char* name, std::span<const uint64_t> addresses, int64_t updated);

  /// What kernels of torch.compile do that this thread launches between these two is `work`, but
  /// for its name, threads and bytes.
  static void work_starts(estimator::TraceWork work);
  static void work_ends();

  /// The outermost module at `model` is called to train on a tensor of so many integers.
  void model_reads(uint64_t model, int64_t integers);

  /// An outermost module that is trained is called without gradients; the call ends.
  void evaluation_started();
  void evaluation_finished();

  /// A backward makes a graph of its own.
  void backward_is_differentiated();

  /// An optimizer on the CPU moved so many bytes; `is_fused`: in one pass over its tensors.
  void host_updated(int64_t bytes, bool is_fused);

  /// A range that profilers see, of which those that have a price are kept.
  void range_started(std::string_view name);
  void operator_started(const at::RecordFunction& function, const OperatorTraits& op);
  /// A node of autograd.
  void node_started(std::string_view name);
  void operator_finished(const at::RecordFunction& function);
  void device_event(const onerank_virtual_gpu_event& event);
  /// What the stub asks of the device between these two is no work of the program. `stream` is the
  /// stream's number on the virtual GPU; `mark` is that of the call in the CUDA graph that captures
  /// the stream, or 0: it is called at each launch of the graph.
  void nccl_called(const onerank_nccl_call& call, int stream, uint64_t mark);
  void nccl_answered();

  /// Somebody asks how long the device takes. The clock runs from now on, if there is one.
  void start_clock();
  bool is_clocked() const { return clocked_; }
  /// As of DeviceClock.
  std::optional<double> seconds_between(uint64_t start, uint64_t end) const;

  /// The devices that ran products and attention in the recorded iteration.
  std::vector<int64_t> product_devices() const;

  /// Empty unless a whole iteration was recorded.
  std::optional<estimator::Trace> trace() const;

 private:
  /// A work of a CUDA graph, and where the program was when it was captured.
  struct Captured {
    std::optional<estimator::TraceWork> work;  ///< of a kernel
    std::optional<NcclGroup> calls;            ///< of a mark
    bool is_of_nccl = false;                   ///< the stub asked for it
    Place place;
  };

  TracedEvent event_here(estimator::TraceEventKind kind, int stream, int64_t item) const;
  TracedEvent launch_here(int stream, int64_t item) const;
  void add(const TracedEvent& event);
  bool is_of_operator(const onerank_virtual_gpu_event& event);
  void add_work(const estimator::TraceWork& work, int stream);
  void add_kernel(const onerank_virtual_gpu_event& event);
  void add_captured(const onerank_virtual_gpu_event& event);
  void add_product(const onerank_virtual_gpu_event& event);
  void add_copy(const onerank_virtual_gpu_event& event);
  void add_mark(const onerank_virtual_gpu_event& event);
  void capture_call(const onerank_nccl_call& call, const estimator::TraceWork& work, uint64_t mark);
  void add_host_wait(const onerank_virtual_gpu_event& event);
  void add_event(const onerank_virtual_gpu_event& event);
  void follow_graphs(const onerank_virtual_gpu_event& event);
  estimator::TraceWork described(const onerank_virtual_gpu_event& event);
  bool follows() const { return recording_ || clocked_; }
  void begin_clock();
  bool describes_operators() const { return follows() || capturing_; }
  const std::string& kernel_name(const char* mangled);

  RunTracker& tracker_;
  std::atomic<bool> recording_ = false;
  std::atomic<bool> capturing_ = false;
  std::atomic<bool> clocked_ = false;
  const ClockedDevice device_;
  mutable std::mutex mutex_;  // of all below
  int64_t last_record_ = 0;   // that was seen
  TracedIteration traced_;
  std::optional<ProgramClock> clock_;
  KernelArguments arguments_;
  std::unordered_map<const char*, std::string> kernel_names_;
  std::set<int64_t> product_devices_;
  std::unordered_map<uint64_t, Captured> captured_;     // by the number of the work
  std::map<NcclGroup::Key, uint64_t> captured_groups_;  // marks of their first calls
};

}  // namespace sim
