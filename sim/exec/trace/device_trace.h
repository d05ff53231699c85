// Tells the stub of CUPTI when the device would have done what the program asks of it.
#pragma once

#include <chrono>
#include <cstdint>

#include "estimator/profile/trace.h"
#include "sim/exec/trace/device_clock.h"
#include "sim/virtual_gpu/cupti/cupti_control.h"

namespace sim {

/// While a profiler traces the device, its host is as late as it really is, and where it waits for
/// works that are still to end, this thread sleeps: profilers leave out what ends after they have.
/// Not thread-safe.
class DeviceTrace {
 public:
  DeviceTrace();

  bool is_on() const { return is_tracing_ != nullptr && is_tracing_() != 0; }

  /// The host asks for such a work here. Returns the number of its call; 0 if nobody traces.
  uint32_t called(estimator::WorkKind kind) const;
  /// Of a call, if it has a number.
  void ran(const estimator::TraceWork& work, uint32_t call, int stream, double seconds);

  /// The device's clock, whose host has come to now.
  DeviceClock& clock();
  /// Sleeps until its host is there.
  void catch_up() const;

 private:
  double now() const;

  decltype(&onerank_cupti_is_tracing) is_tracing_;
  decltype(&onerank_cupti_called) called_;
  decltype(&onerank_cupti_ran) ran_;
  std::chrono::system_clock::time_point start_ = std::chrono::system_clock::now();
  DeviceClock clock_;
};

}  // namespace sim
