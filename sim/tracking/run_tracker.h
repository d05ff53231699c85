// Follows a run from inside libtorch: every operator, every autograd node, every block of memory.
//
// libtorch passes the tracker to each thread that works for the run, including autograd's, as the
// thread's profiler state (c10::ThreadLocalDebugInfo, kind PROFILER_STATE). Callbacks find it
// there, so no global variable is needed, and threads outside the run are not followed.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>

#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/after_backward.h"
#include "sim/tracking/allocator_trace.h"
#include "sim/tracking/frame_store.h"
#include "sim/tracking/memory_history.h"
#include "sim/tracking/memory_tracker.h"
#include "sim/tracking/module_tree.h"
#include "sim/tracking/operator_call.h"
#include "sim/tracking/order_log.h"
#include "sim/tracking/tally.h"
#include "sim/tracking/thread_places.h"

namespace sim {

/// Where the allocator ran out of memory, the bytes that it was asked for, and the bytes that it
/// had reserved.
struct OutOfMemoryPlace {
  int32_t phase = kNoPhase;
  ModuleId module = kRootModule;
  const OperatorTraits* op = nullptr;
  int64_t requested_bytes = 0;
  int64_t reserved_bytes = 0;
};

struct MemoryBlock {
  uint64_t address;
  uint64_t bytes;
  bool operator==(const MemoryBlock&) const = default;
};

/// A collective and the place from which it was called.
struct PlacedCollective {
  estimator::CollectiveCall call;
  int32_t phase = 0;
  estimator::Direction direction = estimator::Direction::kForward;
  std::string module;  ///< Module::group
  int64_t chunk = estimator::kNoChunk;
  bool operator==(const PlacedCollective&) const = default;
};

struct PlacedCollectiveHash {
  size_t operator()(const PlacedCollective& collective) const;
};

class TrackedRun;

/// Thread-safe. Its lock is taken while the allocator's lock is held, so nothing here may call the
/// allocator.
class RunTracker final : public c10::MemoryReportingInfoBase {
 public:
  using OperatorTally = Tally<OperatorCall, OperatorCallHash>;
  using CollectiveTally = Tally<PlacedCollective, PlacedCollectiveHash>;

  struct Options {
    c10::DeviceType device = c10::DeviceType::CUDA;  ///< whose memory is followed
    bool attribute_memory = true;                    ///< follow every block
    bool keep_history = false;                       ///< needed by the files of memory_files.h
    bool take_stacks = false;                        ///< record the C++ call stack of each block
    bool keep_order = false;  ///< of operators and collectives while recording: order()
    /// True if enter_direction() says where the forward ends. Else the forward ends where a
    /// backward node starts, a module that is entered in backward counts as recompute, and what
    /// follows the backward until the next forward as the reduction of gradients (AfterBackward).
    bool directions_are_announced = true;
    ReadIntegers read_integers = {};  ///< for measure_inputs()
  };

  /// The thread that constructs it is the main thread. A thread without a place of its own (an
  /// autograd thread between two nodes) counts as being where the main thread is.
  explicit RunTracker(const Options& options);

  const ReadIntegers& read_integers() const { return options_.read_integers; }

  /// From now on everything belongs to phase number `phase`, which is the next phase or the last
  /// one again. `direction` is used wherever no other one is announced.
  void begin_phase(int32_t phase, estimator::Direction direction);
  void end_phase();
  /// An optimizer step has ended, and with it an iteration of the program.
  void end_iteration();
  /// From now on `direction` is used instead of the phase's.
  void set_direction(estimator::Direction direction);
  /// A backward ran without its nodes, as a CUDA graph.
  void backward_ran();
  /// From now on the peak that memory() tells of is that of what follows.
  void restart_peak();

  /// Operators and collectives are counted only while recording. Operators and autograd nodes are
  /// followed while recording, and always if memory is attributed.
  void set_recording(bool recording);
  /// The operators that were counted until now do not count.
  void forget_operators();

  void enter_module(const std::string& name);
  /// The same, given by the path from the root.
  void enter_path(std::string_view path);
  /// If the direction needs a micro-batch and none is given, micro-batch and chunk are those of the
  /// surrounding place.
  void enter_direction(estimator::Direction direction, int64_t micro_batch, int64_t chunk);
  void leave_direction();
  void enter_piece(estimator::Direction direction,
                   int64_t micro_batch,
                   int64_t chunk,
                   int64_t piece);
  /// Leaves what this thread entered last. Throws std::logic_error if it entered nothing.
  void leave();

  void operator_started(const at::RecordFunction& function);
  void operator_finished(const at::RecordFunction& function);
  void node_started(const at::RecordFunction& node);
  void node_finished();
  void collective_called(const estimator::CollectiveCall& call);

  /// Streams of a plan's rank: see Observer and OrderLog. Points from before the recording are
  /// OrderLog::kNoRecord, for which nothing waits.
  int64_t new_stream();
  void enter_stream(int64_t stream);
  int64_t record_point();
  void wait_for_point(int64_t point);
  int64_t end_of_last_call(estimator::GroupKind group) const;
  void tensor_communicated(const at::Tensor& tensor);
  void memory_lasts(const at::Tensor& tensor, const estimator::LastingMemory& memory);
  /// The same, given by the address of a block.
  void memory_lasts(uint64_t address, const estimator::LastingMemory& memory);
  void memory_communicated(uint64_t address);
  /// A collective gathers the memory at `address` from all ranks.
  void memory_gathered(uint64_t address);
  /// A collective sums the memory at `address` over the ranks.
  void memory_reduced(uint64_t address);
  /// Keeps the first exception of a callback, which must not throw into libtorch.
  void keep_error(std::exception_ptr error);

  void reportMemoryUsage(void* block,
                         int64_t change_bytes,
                         size_t allocated_bytes,
                         size_t reserved_bytes,
                         c10::Device device) override;
  void reportOutOfMemory(int64_t requested_bytes,
                         size_t allocated_bytes,
                         size_t reserved_bytes,
                         c10::Device device) override;
  bool memoryProfilingEnabled() const override { return options_.attribute_memory; }
  /// For an allocator that reports more than reportMemoryUsage() has. It is called before that.
  void allocator_event(const AllocatorEvent& event);

  /// For callers that learn a block's size only after it was made: origin_of_block() returns where
  /// the thread is that makes the block, and block_made() then reports the block. `after` is the
  /// state right after the change.
  MemoryOrigin origin_of_block(uint64_t address);
  void block_made(uint64_t address,
                  int64_t bytes,
                  const estimator::MemoryReading& after,
                  const MemoryOrigin& origin);
  void block_freed(uint64_t address, const estimator::MemoryReading& after);
  /// Bytes of the activations that the last finished forward or recompute keeps, counted in blocks.
  int64_t activation_bytes() const { return activation_bytes_; }
  /// Where this thread is.
  Place place_here();
  /// The live block that contains `address`.
  std::optional<MemoryBlock> block_around(uint64_t address) const;

  /// `read(TrackedRun)` while no other thread changes anything. It may not call the allocator, and
  /// keeps no reference to what it read.
  template <class Read>
  auto locked(const Read& read) const;
  /// What was tracked, when no thread works for it any more.
  TrackedRun ended() const;

  /// Throws the exception that keep_error() kept.
  void throw_if_failed() const;
  /// Where memory ran out for the last time, if it did.
  std::optional<OutOfMemoryPlace> out_of_memory() const;

 private:
  friend class TrackedRun;
  ThreadPlaces& this_thread();
  ThreadPlaces& thread(uint64_t id);
  Place place_of(const ThreadPlaces& thread) const;
  Place place_in_modules(const ThreadPlaces& thread) const;
  bool is_main(const ThreadPlaces& thread) const { return &thread == &threads_.front(); }
  bool is_after_backward(const ThreadPlaces& thread) const;
  bool follows_operators() const { return recording_ || options_.attribute_memory; }
  void enter(ThreadPlaces& thread, const Scope& scope);
  void leave(ThreadPlaces& thread);
  bool begins_part(const Place& place) const;
  OrderLog& order_now();
  void note_module(ThreadPlaces& thread);
  ModuleId module_of_node(const at::RecordFunction& node, const Place& around);
  ModuleKind kind_of(const Place& place) const;
  /// Null for a range that was named for profilers, which is no operator itself.
  const OperatorTraits* traits(const at::RecordFunction& function);
  void host_range_started(const std::string& name, ThreadPlaces& thread);
  bool count_if_work(OperatorFrame& frame, const at::RecordFunction& function);
  void saw_written(c10::ArrayRef<c10::IValue> inputs, const OperatorTraits& op);
  void saw_results(const at::RecordFunction& function);
  void outermost_operator_ended(ThreadPlaces& thread);
  void keep_sample(uint64_t address,
                   bool made,
                   const estimator::MemoryReading& after,
                   const Place& place);
  void end_forward();

  const Options options_;
  mutable std::mutex mutex_;
  std::deque<ThreadPlaces> threads_;  // the first is the main thread
  ModuleTree modules_;
  // By address of the overload's name.
  std::unordered_map<const char*, std::optional<OperatorTraits>> traits_;
  std::unordered_map<std::string, OperatorTraits> kernels_;  // of the plan's framework, by name
  OperatorTally operators_;
  CollectiveTally collectives_;
  OrderLog order_;
  MemoryTracker memory_;
  MemoryHistory history_;
  FrameStore frames_;
  int32_t phase_ = kNoPhase;
  estimator::Direction phase_direction_ = estimator::Direction::kForward;
  bool recording_ = false;
  AfterBackward after_backward_;
  int64_t forward_since_ = 0;  // the memory event of the end of the last forward
  bool forward_made_ = false;  // a block, since then
  int64_t activation_bytes_ = 0;
  std::optional<OutOfMemoryPlace> out_of_memory_;
  std::exception_ptr error_;
};

/// What a tracker has recorded. It may only be read as RunTracker::locked() and ended() say.
class TrackedRun {
 public:
  const RunTracker::OperatorTally& operators() const { return tracker_.operators_; }
  const OrderLog& order() const { return tracker_.order_; }
  const RunTracker::CollectiveTally& collectives() const { return tracker_.collectives_; }
  const ModuleTree& modules() const { return tracker_.modules_; }
  const MemoryTracker& memory() const { return tracker_.memory_; }
  const MemoryHistory& history() const { return tracker_.history_; }
  /// Names of C++ functions; empty for -1.
  std::vector<std::string> frames(int32_t stack) const;

 private:
  friend class RunTracker;
  explicit TrackedRun(const RunTracker& tracker) : tracker_(tracker) {}

  const RunTracker& tracker_;
};

template <class Read>
auto RunTracker::locked(const Read& read) const {
  const std::lock_guard lock(mutex_);
  return read(TrackedRun(*this));
}

/// Of a module, from the root.
std::string module_path(const RunTracker& tracker, ModuleId module);

inline TrackedRun RunTracker::ended() const { return TrackedRun(*this); }

}  // namespace sim
