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
#include <tuple>
#include <unordered_map>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/trace.h"
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
/// operators that ran while it was captured. A kernel outside operators (Triton's, an
/// extension's) moves what its arguments tell, else the blocks of memory that it was given.
class TraceRecorder {
 public:
  /// `tracker` knows where threads are in the program, and the blocks of memory.
  explicit TraceRecorder(RunTracker& tracker) : tracker_(tracker) {}

  /// Begins the trace of `iteration`, and ends it. Between them it may be stopped and started again
  /// (a program with several optimizers steps them one after the other).
  void start(int64_t iteration);
  void stop();
  /// What was recorded does not count. Called between stop() and start().
  void forget();

  /// A tensor of `bytes` at `address` is a part of its block, for as long as there is that block.
  void tensor_lies(uint64_t address, int64_t bytes);

  /// From now on a kernel with this name reads and writes the first `updated` of `addresses` if it
  /// is given them, and does not do both with the others.
  void kernel_updates(const char* name, std::span<const uint64_t> addresses, int64_t updated);

  /// From now on kernels that this thread launches have loops of these lengths; none: their numbers
  /// are taken for them.
  static void kernel_loops(std::span<const int64_t> lengths);

  /// What this thread launches between these two is `work`, but for its name, threads and bytes.
  static void attention_starts(estimator::TraceWork work);
  static void attention_ends();

  /// The outermost module at `model` is called to train on a tensor of so many integers.
  void model_reads(uint64_t model, int64_t integers);

  /// A backward makes a graph of its own.
  void backward_is_differentiated();

  /// An optimizer on the CPU moved so many bytes; `is_fused`: in one pass over its tensors.
  void host_updated(int64_t bytes, bool is_fused);

  /// A range that the program named for profilers; those of fully_shard are kept.
  void range_started(std::string_view name);
  void operator_started(const at::RecordFunction& function, const OperatorTraits& op);
  /// A node of autograd.
  void node_started();
  void operator_finished(const at::RecordFunction& function);
  void device_event(const onerank_virtual_gpu_event& event);
  /// What the stub asks of the device between these two is no work of the program. `stream` is the
  /// stream's number on the virtual GPU.
  void nccl_called(const onerank_nccl_call& call, int stream);
  void nccl_answered();

  /// The devices that ran products and attention in the recorded iteration.
  std::vector<int64_t> product_devices() const;

  /// Empty unless a whole iteration was recorded.
  std::optional<estimator::Trace> trace() const;

 private:
  /// Until trace(), modules are numbers of the tracker's tree, records have the virtual GPU's
  /// numbers, and messages are in `groups_`.
  struct Event {
    estimator::TraceEventKind kind = estimator::TraceEventKind::kLaunch;
    int stream = -1;
    int64_t item = 0;
    Place place;
    estimator::HostIssue issue = estimator::HostIssue::kNothing;
    int64_t operators = 0;
  };
  /// A work of a CUDA graph, and where the program was when it was captured.
  struct Captured {
    std::optional<estimator::TraceWork> work;  ///< of a kernel
    Place place;
  };
  /// A parameter or gradient in a flat buffer.
  struct TensorInBlock {
    int64_t bytes = 0;
    MemoryBlock block;
  };
  /// The messages of one NCCL group over one communicator, or its collectives of one kind: NCCL
  /// launches them as one (NCCL User Guide, "Group Calls", "Aggregated Operations").
  struct Group {
    std::size_t event = 0;
    estimator::TraceWork work;
    int ranks = 0;        ///< of the communicator
    std::set<int> roots;  ///< of its calls; -1: none
  };
  /// Broadcasts from every rank are how torch gathers tensors of different sizes.
  static estimator::TraceWork joined(const Group& group);

  Event& add(estimator::TraceEventKind kind, int stream, bool is_issued);
  void add_work(const estimator::TraceWork& work, int stream);
  void add_kernel(const onerank_virtual_gpu_event& event);
  void add_captured(const onerank_virtual_gpu_event& event);
  estimator::TraceWork described(const onerank_virtual_gpu_event& event);
  estimator::TraceWork described_by_memory(const onerank_virtual_gpu_event& event);
  bool describes_operators() const { return recording_ || capturing_; }
  void add_copy(const onerank_virtual_gpu_event& event);
  int64_t number_of(const estimator::TraceWork& work);
  std::map<int64_t, int64_t> places_of_records() const;
  const std::string& kernel_name(const char* mangled);
  int64_t bytes_at(uint64_t address) const;
  /// What a kernel was given, by address.
  struct GivenMemory {
    std::map<uint64_t, int64_t> bytes;
    std::map<uint64_t, int64_t> times;  ///< that it is read or written
    int64_t largest = 0;                ///< of `bytes`
  };
  GivenMemory memory_given_to(const onerank_virtual_gpu_event& event) const;
  static int64_t bytes_moved(const onerank_virtual_gpu_event& event,
                             const GivenMemory& given,
                             const std::vector<int64_t>& sizes);

  RunTracker& tracker_;
  std::atomic<bool> recording_ = false;
  std::atomic<bool> capturing_ = false;
  mutable std::mutex mutex_;  // of all below
  bool is_complete_ = false;
  int64_t iteration_ = 0;
  int64_t forgotten_ = 0;     // how often forget() was called
  int64_t last_record_ = 0;   // that was seen
  int64_t first_record_ = 0;  // the iteration's: from the first start to the last stop
  int64_t end_record_ = 0;
  bool differentiates_backward_ = false;
  std::vector<Event> events_;
  std::vector<estimator::TraceRange> ranges_;  // by places in `events_`
  std::vector<estimator::TraceWork> works_;
  std::map<std::string, int64_t> numbers_;  // of works, by their text
  std::unordered_map<const char*, std::string> kernel_names_;
  std::unordered_map<uint64_t, TensorInBlock> tensors_;             // by address
  std::map<std::string, std::set<uint64_t>> updated_;               // addresses, by kernel
  std::map<std::tuple<uint64_t, int, std::string>, Group> groups_;  // by communicator and kind
  std::set<int64_t> product_devices_;
  std::unordered_map<uint64_t, Captured> captured_;        // by the number of the work
  std::map<uint64_t, int64_t> models_;                     // numbers, by address
  std::map<std::pair<int64_t, int64_t>, int64_t> inputs_;  // calls, by model and integers
};

/// What this thread does between these two is the recorder's own work: its operators are none of
/// the program's.
void own_work_starts();
void own_work_ends();
bool is_own_work();

}  // namespace sim
