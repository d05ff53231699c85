// Watches the run of one rank and writes the parts of its profile that come from the run: phases,
// operators, collectives, what fills the peak, and the micro-batches in flight.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/profile/run_observer.h"
#include "sim/recording/memory_reader.h"
#include "sim/tracking/operator_callbacks.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

struct RecorderOptions {
  MemoryReader& memory;
  bool attribute_memory = true;  ///< follow every block of memory, to say what fills the peak
  bool keep_history = false;     ///< for memory_history() and timeline(); needs attribute_memory
  bool take_stacks = false;      ///< record the C++ call stack of each block
};

/// Records one run. Create, use and destroy it in the thread that runs the shard, with no other
/// profiler switched on. The order of calls is:
///
///     begin_phase("build_model") ... end_phase(), and so on for each phase;
///     start_recording() before iteration 1, stop_recording() after it;
///     finish(profile).
///
/// Calls of the Observer and memory are followed in all phases; operators and collectives are
/// followed only while recording.
///
/// If no direction is announced, the direction is optimizer_step in phases of that name and
/// reduce_gradients in other phases; both count once for an iteration. An autograd node always
/// counts as backward.
class Recorder final : public estimator::Observer {
 public:
  explicit Recorder(RecorderOptions options);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Waits for the device, then reads the memory and starts the clock. Names are those of
  /// PhaseRecord.
  void begin_phase(const std::string& name);
  /// Waits for the device, then stops the clock and reads the memory.
  void end_phase();
  /// The running phase, or "". After an out-of-memory error it is the phase in which it was raised.
  const std::string& running_phase() const { return running_.name; }

  /// After an out-of-memory error: where memory ran out. `device_bytes` is the memory of the
  /// device. Module and operator are known in full only if recording was on.
  estimator::OutOfMemoryRecord out_of_memory(int64_t device_bytes, std::string message) const;

  void start_recording();
  void stop_recording();

  /// The time between these two calls is subtracted from the running phase. In this time the stub
  /// answers for absent ranks, which is not the shard's work. Both calls wait for the device.
  void stop_clock();
  void continue_clock();

  /// The sink for the process groups of the shard. May be called from any thread of the run.
  void on_collective(const estimator::CollectiveCall& call);
  /// The end of the group's last asynchronous call, for wait_for_point().
  int64_t end_of_last_call(estimator::GroupKind group) const;
  /// A tensor that a collective read, wrote or allocated.
  void on_communicated(const at::Tensor& tensor);

  void enter_module(const std::string& name) override;
  void leave_module() override;
  void enter_direction(estimator::Direction direction, int64_t micro_batch, int64_t chunk) override;
  void leave_direction() override;
  int64_t new_stream() override;
  void enter_piece(estimator::Direction direction,
                   int64_t micro_batch,
                   int64_t chunk,
                   int64_t piece) override;
  void leave_piece() override;
  void enter_stream(int64_t stream) override;
  void leave_stream() override;
  int64_t record_point() override;
  void wait_for_point(int64_t point) override;
  void forward_finished(int64_t micro_batch) override;
  void backward_finished(int64_t micro_batch) override;
  void memory_lasts(const at::Tensor& tensor, const estimator::LastingMemory& memory) override;

  /// Writes phases, peak, allocator, modules, collectives, operators, order,
  /// micro_batches.most_in_flight and micro_batches.activation_bytes. Reads parameters, and
  /// micro_batches.total and .executed, which must be set: the planned count of what happens in
  /// each micro-batch is executed_count x total / executed. Throws std::logic_error when a phase or
  /// the recording is still on, or when executed is 0.
  void finish(estimator::RankProfile& profile) const;

  /// To be called after the run: what fills the peak. Empty if memory was not attributed.
  std::vector<estimator::PeakAllocation> peak_allocations() const;
  /// See memory_files.h.
  std::string memory_history(const estimator::Json& about) const;
  std::string timeline() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<std::string> phase_names() const;
  estimator::PeakRecord peak_record() const;
  estimator::CollectiveRecord record_of(const RunTracker::CollectiveTally::Entry& entry,
                                        const estimator::MicroBatchRecord& micro_batches) const;
  estimator::OperatorRecord record_of(const RunTracker::OperatorTally::Entry& entry,
                                      const estimator::MicroBatchRecord& micro_batches) const;
  std::string iteration_phase(int32_t phase) const;

  const RecorderOptions options_;
  const std::shared_ptr<RunTracker> tracker_;
  const c10::DebugInfoGuard carried_by_threads_;
  std::optional<OperatorCallbacks> callbacks_;
  bool recording_ = false;

  estimator::PhaseRecord running_;
  Clock::time_point started_;
  Clock::time_point stopped_;
  std::vector<estimator::PhaseRecord> phases_;
  estimator::AllocatorRecord allocator_;

  std::set<int64_t> in_flight_;
  int64_t most_in_flight_ = 0;
  std::optional<int64_t> activation_bytes_;
};

}  // namespace sim
