// Times kernels that run in a row, on the host's clock.
#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace sim {

class KernelClock {
 public:
  explicit KernelClock(c10::Device device) : device_(device) {}

  c10::Device device() const { return device_; }

  /// Seconds of one `run`, which launches kernels: the mean over as many runs as fill some tenths
  /// of a second, so that the board's power settles and launches hide behind kernels.
  double seconds_of(const std::function<void()>& run) const;

  /// Seconds from kernel to kernel with nothing to do, while the host is far ahead.
  double launch_seconds() const;

  /// Seconds that the host takes to call an operator.
  double host_seconds() const;

 private:
  void synchronize() const;

  c10::Device device_;
};

}  // namespace sim
