// The time that a program reads from events of its device: its works at the prices of the replay,
// at full speed of a usual GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/communication/fabric.h"
#include "estimator/compute/gpu_rates.h"
#include "estimator/profile/program_record.h"
#include "sim/exec/trace/device_clock.h"
#include "sim/exec/trace/device_trace.h"
#include "sim/exec/trace/nccl_group.h"
#include "sim/exec/trace/traced_iteration.h"

namespace sim {

/// Whose time it is.
struct ClockedDevice {
  std::string gpu;  ///< id in the GPU database
  int64_t world_size = 1;
  int64_t gpus_per_node = 1;
  /// Of NCCL, by its number.
  std::function<estimator::CommunicatorRecord(int)> communicator = nullptr;
};

/// Not thread-safe.
class ProgramClock {
 public:
  /// Throws std::logic_error for a GPU that is not in the database.
  explicit ProgramClock(const ClockedDevice& device);

  /// The host begins a range that the program named for profilers.
  void range_started(const std::string& name);
  /// The host causes an event; what it launches is told by runs(). `is_of_operator`: an operator
  /// does.
  void issued(const TracedEvent& event, bool is_of_operator);
  /// As of DeviceTrace.
  uint32_t called(estimator::WorkKind kind) const { return trace_.called(kind); }
  void record(int stream, uint64_t record, bool is_asked_for);
  /// `call` is the number that called() gave.
  void runs(const estimator::TraceWork& work, int stream, uint32_t call);
  /// NCCL runs the calls of a group as one when the next event comes.
  void calls(const onerank_nccl_call& call, const estimator::TraceWork& work, int stream);

  /// As of DeviceClock.
  std::optional<double> seconds_between(uint64_t start, uint64_t end) const;

 private:
  struct OpenGroup {
    NcclGroup::Key key;
    NcclGroup calls;
    int stream = 0;
    uint32_t call = 0;
  };
  void close_group();
  double price(const estimator::TraceWork& work) const;

  const ClockedDevice device_;
  estimator::ClusterConfig cluster_;
  estimator::GpuRates rates_;
  estimator::Fabric fabric_;
  std::optional<OpenGroup> group_;
  DeviceClock clock_;
  DeviceTrace trace_;
};

}  // namespace sim
